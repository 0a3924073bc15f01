#include "net/rate_limit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

namespace todoke::net {

namespace {
// How many buckets are looked at for a full one. Those that are not go to the other end, so that the next
// search looks at others.
constexpr int kFullSearchMax = 8;
constexpr std::chrono::milliseconds kRetryAfterMax = std::chrono::hours(24);
}  // namespace

RateLimiter::RateLimiter(std::string_view verb, Rate rate, bool on, const Clock& clock,
                         metrics::Registry& registry, std::size_t keys_max)
    : rate_(rate),
      on_(on),
      keys_max_(keys_max),
      clock_(clock),
      limited_(registry.counters("todoke_rate_limited_total", "Requests refused by a rate limit.", {"verb"})
                   .with({std::string(verb)})),
      crowded_(
          registry
              .counters("todoke_rate_limit_crowded_total",
                        "Requests that were charged to a shared bucket: there was no room for their own.",
                        {"verb"})
              .with({std::string(verb)})),
      keys_gauge_(
          registry
              .gauges("todoke_rate_limit_keys", "Addresses and keys whose rates are remembered.", {"verb"})
              .with({std::string(verb)})) {
  if (rate.per_second <= 0 || rate.burst <= 0 || keys_max == 0)
    throw std::invalid_argument("a rate must be positive");
}

RateLimiter::Verdict RateLimiter::take(std::string_view key, double cost) {
  const std::array<Charge, 1> charges{Charge{key}};
  return take(charges, cost);
}

RateLimiter::Verdict RateLimiter::take(std::span<const Charge> charges, double cost) {
  if (!on_) return {};
  const std::lock_guard lock(mutex_);
  return pay(charges, std::min(cost / scale_, rate_.burst), false);
}

void RateLimiter::charge(std::span<const Charge> charges, double cost) {
  if (!on_ || cost <= 0) return;
  const std::lock_guard lock(mutex_);
  pay(charges, cost / scale_, true);
}

RateLimiter::Verdict RateLimiter::pay(std::span<const Charge> charges, double cost, bool may_owe) {
  const auto now = clock_.steady();
  // A bucket from which tokens were taken is not full, so it is not removed while the others are found.
  std::array<Level*, kChargesMax> paid{};
  auto end = paid.begin();
  for (const auto& charge : charges) {
    double times = charge.times;
    auto& level = level_of(charge, times, now);
    if (std::find(paid.begin(), end, &level) != end) continue;
    if (end == paid.end()) throw std::logic_error("too many buckets for one charge");
    level = {tokens_at(level, times, now), now};
    if (!may_owe && level.tokens < cost) {
      std::for_each(paid.begin(), end, [&](Level* payer) { payer->tokens += cost; });
      return refusal(cost - level.tokens, times);
    }
    level.tokens = std::max(level.tokens - cost, -rate_.burst * times);
    *end++ = &level;
  }
  return {};
}

RateLimiter::Verdict RateLimiter::refusal(double missing, double times) {
  limited_.add();
  const double wait_ms = std::ceil(std::max(missing, 0.0) / (rate_.per_second * times) * 1000);
  const auto most = static_cast<double>(kRetryAfterMax.count());
  return {false, std::chrono::milliseconds(static_cast<std::int64_t>(std::min(wait_ms, most)))};
}

void RateLimiter::set(Rate rate, bool on) {
  if (rate.per_second <= 0 || rate.burst <= 0) throw std::invalid_argument("a rate must be positive");
  const std::lock_guard lock(mutex_);
  rate_ = rate;
  on_ = on;
}

void RateLimiter::scale(double factor) {
  if (factor <= 0) throw std::invalid_argument("a rate must be positive");
  const std::lock_guard lock(mutex_);
  scale_ = factor;
}

std::size_t RateLimiter::keys() const {
  const std::lock_guard lock(mutex_);
  return buckets_.size();
}

RateLimiter::Level& RateLimiter::level_of(const Charge& charge, double& times, SteadyTime now) {
  const auto found = index_.find(charge.key);
  if (found != index_.end()) {
    buckets_.splice(buckets_.begin(), buckets_, found->second);
    buckets_.front().times = times;
    return buckets_.front().level;
  }
  if (buckets_.size() >= keys_max_ && !make_room(now)) {
    crowded_.add();
    times = kCrowdTimes;
    return crowd_of(charge, now);
  }
  buckets_.push_front({std::string(charge.key), times, {rate_.burst * times, now}});
  index_.emplace(buckets_.front().key, buckets_.begin());
  keys_gauge_.set(static_cast<double>(buckets_.size()));
  return buckets_.front().level;
}

RateLimiter::Level& RateLimiter::crowd_of(const Charge& charge, SteadyTime now) {
  if (crowds_.empty()) crowds_.assign(kCrowds, {rate_.burst * kCrowdTimes, now});
  const auto crowd = charge.crowd.empty() ? charge.key : charge.crowd;
  return crowds_[seeded_hash(as_bytes(crowd)) % kCrowds];
}

bool RateLimiter::make_room(SteadyTime now) {
  for (int i = 0; i < kFullSearchMax; ++i) {
    const auto last = std::prev(buckets_.end());
    if (tokens_at(last->level, last->times, now) >= rate_.burst * last->times) {
      index_.erase(last->key);
      buckets_.erase(last);
      return true;
    }
    buckets_.splice(buckets_.begin(), buckets_, last);
  }
  return false;
}

double RateLimiter::tokens_at(const Level& level, double times, SteadyTime now) const {
  const double seconds = std::chrono::duration<double>(now - level.at).count();
  return std::min(rate_.burst * times, level.tokens + seconds * rate_.per_second * times);
}

}  // namespace todoke::net

#include "net/rate_limit.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace todoke::net {

namespace {
// How many of the least recently used buckets are looked at for a full one.
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
                   .with({std::string(verb)})) {
  if (rate.per_second <= 0 || rate.burst <= 0 || keys_max == 0)
    throw std::invalid_argument("a rate must be positive");
}

RateLimiter::Verdict RateLimiter::take(std::string_view key, double cost) {
  if (!on_) return {};
  const std::lock_guard lock(mutex_);
  cost = std::min(cost, rate_.burst);
  const auto now = clock_.steady();
  auto& bucket = bucket_of(key, now);
  bucket.tokens = tokens_at(bucket, now);
  bucket.at = now;
  if (bucket.tokens >= cost) {
    bucket.tokens -= cost;
    return {};
  }
  limited_.add();
  const double wait_ms = std::ceil((cost - bucket.tokens) / rate_.per_second * 1000);
  const auto most = static_cast<double>(kRetryAfterMax.count());
  return {false, std::chrono::milliseconds(static_cast<std::int64_t>(std::min(wait_ms, most)))};
}

void RateLimiter::set(Rate rate, bool on) {
  if (rate.per_second <= 0 || rate.burst <= 0) throw std::invalid_argument("a rate must be positive");
  const std::lock_guard lock(mutex_);
  rate_ = rate;
  on_ = on;
}

std::size_t RateLimiter::keys() const {
  const std::lock_guard lock(mutex_);
  return buckets_.size();
}

RateLimiter::Bucket& RateLimiter::bucket_of(std::string_view key, SteadyTime now) {
  const auto found = index_.find(key);
  if (found != index_.end()) {
    buckets_.splice(buckets_.begin(), buckets_, found->second);
    return buckets_.front();
  }
  if (buckets_.size() >= keys_max_) make_room(now);
  buckets_.push_front({std::string(key), rate_.burst, now});
  index_.emplace(buckets_.front().key, buckets_.begin());
  return buckets_.front();
}

void RateLimiter::make_room(SteadyTime now) {
  auto victim = std::prev(buckets_.end());
  auto candidate = victim;
  for (int i = 0; i < kFullSearchMax; ++i) {
    if (tokens_at(*candidate, now) >= rate_.burst) {
      victim = candidate;
      break;
    }
    if (candidate == buckets_.begin()) break;
    --candidate;
  }
  index_.erase(victim->key);
  buckets_.erase(victim);
}

double RateLimiter::tokens_at(const Bucket& bucket, SteadyTime now) const {
  const double seconds = std::chrono::duration<double>(now - bucket.at).count();
  return std::min(rate_.burst, bucket.tokens + seconds * rate_.per_second);
}

}  // namespace todoke::net

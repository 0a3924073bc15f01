// Rate limits: a token bucket for each key (an address, a public key). Pure: time comes from the clock that
// is given. Bounded: at most `keys_max` buckets. A full bucket is the same as none, so full ones go first
// when room is needed, then the least recently used. Thread-safe; a call takes one lock for less than a
// microsecond.
#pragma once

#include <atomic>
#include <chrono>
#include <list>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/hash_table.hpp"
#include "base/metrics.hpp"

namespace todoke::net {

struct Rate {
  double per_second = 1;
  double burst = 1;  // tokens in a full bucket
};

class RateLimiter {
 public:
  static constexpr std::size_t kKeysMaxDefault = 100'000;  // about 20 MB

  // `verb` is what is limited: the label of todoke_rate_limited_total. `on` false allows everything and keeps
  // nothing.
  RateLimiter(std::string_view verb, Rate rate, bool on, const Clock& clock, metrics::Registry& registry,
              std::size_t keys_max = kKeysMaxDefault);

  struct Verdict {
    bool allowed = true;
    std::chrono::milliseconds retry_after{0};  // when refused: how long until it would be allowed
  };
  // Takes `cost` tokens from the bucket of `key`, or none when there are not enough. What costs more than a
  // full bucket holds takes a full one.
  Verdict take(std::string_view key, double cost = 1);
  // Holds at once; a bucket has at most the new burst.
  void set(Rate rate, bool on);

  [[nodiscard]] std::size_t keys() const;

 private:
  struct Bucket {
    std::string key;
    double tokens;
    SteadyTime at;  // when `tokens` was true
  };
  using Buckets = std::list<Bucket>;  // the most recently used first

  Bucket& bucket_of(std::string_view key, SteadyTime now);
  void make_room(SteadyTime now);
  [[nodiscard]] double tokens_at(const Bucket& bucket, SteadyTime now) const;

  Rate rate_;  // under the mutex
  std::atomic<bool> on_;
  const std::size_t keys_max_;
  const Clock& clock_;
  metrics::Counter& limited_;
  mutable std::mutex mutex_;
  Buckets buckets_;
  HashMap<std::string_view, Buckets::iterator> index_;  // keys live in the buckets
};

}  // namespace todoke::net

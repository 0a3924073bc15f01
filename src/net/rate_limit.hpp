// Rate limits: a token bucket for each key (a network of addresses, a public key). Pure: time comes from the
// clock that is given. Thread-safe; a call takes one lock for about a microsecond.
//
// Bounded: at most `keys_max` buckets. A full bucket is the same as none, so full ones go when room is
// needed, and only those: no client gets tokens back because others made the node forget its bucket. Where
// none is full, a key that has no bucket shares one of kCrowds with others (its Charge says with whom), and
// the shared bucket is as large as those of kCrowdTimes keys. So a client whose bucket is there notices
// nothing of an attack with a million addresses, a newcomer gets less than usual, and all newcomers together
// get a bounded amount.
#pragma once

#include <atomic>
#include <chrono>
#include <list>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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
  static constexpr std::size_t kCrowds = 1'024;
  static constexpr double kCrowdTimes = 4;

  // `verb` is what is limited: the label of todoke_rate_limited_total. `on` false allows everything and keeps
  // nothing.
  RateLimiter(std::string_view verb, Rate rate, bool on, const Clock& clock, metrics::Registry& registry,
              std::size_t keys_max = kKeysMaxDefault);

  struct Verdict {
    bool allowed = true;
    std::chrono::milliseconds retry_after{0};  // when refused: how long until it would be allowed
  };
  // A bucket that pays.
  struct Charge {
    std::string_view key;
    // Keys with the same crowd share a bucket where there is no room for their own. Empty: the key itself.
    std::string_view crowd = {};
    double times = 1;  // how many times as large and as fast as the rate says
  };
  // Takes `cost` tokens from the bucket of `key`, or none when there are not enough. What costs more than a
  // full bucket holds takes a full one.
  Verdict take(std::string_view key, double cost = 1);
  // Takes `cost` tokens from every one of the buckets, or none from any. A bucket that stands for several of
  // the charges pays once.
  Verdict take(std::span<const Charge> charges, double cost = 1);
  // Takes `cost` tokens for what was done already, also where they are not there: a bucket owes a full one at
  // most, and what is asked for next is refused until it has enough again.
  void charge(std::span<const Charge> charges, double cost);
  // Holds at once; a bucket has at most the new burst.
  void set(Rate rate, bool on);
  // All rates times this: below 1 where the node is pressed. From anywhere, at once, whatever set() says.
  void scale(double factor);

  [[nodiscard]] std::size_t keys() const;

 private:
  struct Level {
    double tokens;
    SteadyTime at;  // when `tokens` was true
  };
  struct Bucket {
    std::string key;
    double times;
    Level level;
  };
  using Buckets = std::list<Bucket>;  // the most recently used first
  static constexpr std::size_t kChargesMax = 4;

  Verdict pay(std::span<const Charge> charges, double cost, bool may_owe);
  Level& level_of(const Charge& charge, double& times, SteadyTime now);
  Level& crowd_of(const Charge& charge, SteadyTime now);
  bool make_room(SteadyTime now);
  [[nodiscard]] double tokens_at(const Level& level, double times, SteadyTime now) const;
  Verdict refusal(double missing, double times);

  Rate rate_;  // under the mutex
  double scale_ = 1;
  std::atomic<bool> on_;
  const std::size_t keys_max_;
  const Clock& clock_;
  metrics::Counter& limited_;
  metrics::Counter& crowded_;
  metrics::Gauge& keys_gauge_;
  mutable std::mutex mutex_;
  Buckets buckets_;
  HashMap<std::string_view, Buckets::iterator> index_;  // keys live in the buckets
  std::vector<Level> crowds_;                           // made when the first one is needed
};

}  // namespace todoke::net

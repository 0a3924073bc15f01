// How many open orders are in doubt, for orders.limits.in_doubt_max: read twice a second where there is such
// a limit. While the database can't be read the last answer holds; no order can be accepted then anyway.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/periodic.hpp"
#include "pg/pool.hpp"

namespace todoke::orders {

class DoubtGate final : public PeriodicService {
 public:
  // `in_doubt_max` 0: no limit.
  DoubtGate(const Executor& executor, std::int64_t in_doubt_max, pg::Pool& pool, metrics::Registry& registry);

  // Thread-safe.
  [[nodiscard]] bool has_too_much() const { return in_doubt_max_ > 0 && in_doubt_ >= in_doubt_max_; }

  Task<void> start() override;

 private:
  Task<void> round(RoundCause cause) override;

  const std::int64_t in_doubt_max_;
  pg::Pool& pool_;
  std::atomic<std::int64_t> in_doubt_{0};
};

}  // namespace todoke::orders

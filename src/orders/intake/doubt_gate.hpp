// How many open orders are in doubt, for orders.limits.in_doubt_max: read twice a second where there is such
// a limit. While the database can't be read the last answer stands; nothing can be taken then anyway.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/service.hpp"
#include "pg/pool.hpp"

namespace todoke::orders {

class DoubtGate final : public Service {
 public:
  // `in_doubt_max` 0: no limit.
  DoubtGate(const Executor& executor, std::int64_t in_doubt_max, pg::Pool& pool)
      : in_doubt_max_(in_doubt_max), pool_(pool), stop_asked_(executor) {}

  // Thread-safe.
  [[nodiscard]] bool has_too_much() const { return in_doubt_max_ > 0 && in_doubt_ >= in_doubt_max_; }

  [[nodiscard]] std::string_view name() const override { return "orders_gate"; }
  Task<void> start() override;
  Task<void> run() override;
  void stop() override { stop_asked_.set(); }

 private:
  Task<void> read();

  const std::int64_t in_doubt_max_;
  pg::Pool& pool_;
  Signal stop_asked_;
  std::atomic<std::int64_t> in_doubt_{0};
};

}  // namespace todoke::orders

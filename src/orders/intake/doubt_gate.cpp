#include "orders/intake/doubt_gate.hpp"

#include <utility>

#include "orders/intake/intake_sql.hpp"

namespace todoke::orders {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kReadEvery = 450ms;
constexpr std::chrono::milliseconds kGateReadMax = 2s;

}  // namespace

DoubtGate::DoubtGate(const Executor& executor, std::int64_t in_doubt_max, pg::Pool& pool,
                     metrics::Registry& registry)
    : PeriodicService(
          executor,
          {.name = "orders_gate", .failed = "orders in doubt were not counted", .every = kReadEvery},
          registry),
      in_doubt_max_(in_doubt_max),
      pool_(pool) {}

Task<void> DoubtGate::start() {
  return round(RoundCause::time);
}

Task<void> DoubtGate::round(RoundCause /*cause*/) {
  if (in_doubt_max_ == 0) co_return;
  const auto deadline = Deadline::after(kGateReadMax);
  const auto lease = co_await pool_.acquire(deadline);
  pg::Params most(in_doubt_max_);
  const auto count = co_await lease->query(sql::kCountInDoubt, std::move(most), deadline);
  in_doubt_ = count.one().get<std::int64_t>(0);
}

}  // namespace todoke::orders

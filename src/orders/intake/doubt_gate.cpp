#include "orders/intake/doubt_gate.hpp"

#include <utility>

#include "base/log.hpp"
#include "orders/intake/intake_sql.hpp"

namespace todoke::orders {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kReadEvery = 450ms;
constexpr std::chrono::milliseconds kReadMax = 2s;

}  // namespace

Task<void> DoubtGate::start() {
  if (in_doubt_max_ > 0) co_await read();
}

Task<void> DoubtGate::run() {
  if (in_doubt_max_ == 0) co_await stop_asked_.wait();
  while (!stop_asked_.is_set()) {
    const bool stopped = co_await stop_asked_.wait_for(kReadEvery);
    if (stopped) break;
    std::exception_ptr failure;
    try {
      co_await read();
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure) log::debug("orders", "orders in doubt were not counted", {{"error", describe(failure)}});
  }
}

Task<void> DoubtGate::read() {
  const auto deadline = Deadline::after(kReadMax);
  const auto lease = co_await pool_.acquire(deadline);
  pg::Params most(in_doubt_max_);
  const auto count = co_await lease->query(sql::kCountInDoubt, std::move(most), deadline);
  in_doubt_ = count.one().get<std::int64_t>(0);
}

}  // namespace todoke::orders

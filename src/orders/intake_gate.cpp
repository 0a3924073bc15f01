#include "orders/intake_gate.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "orders/intake_sql.hpp"

namespace todoke::orders {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kReadEvery = 450ms;
constexpr std::chrono::milliseconds kReadMax = 2s;
constexpr std::string_view kAny = "*";

}  // namespace

IntakeGate::IntakeGate(const Executor& executor, GateOptions options, pg::Pool& pool, pg::Listener& listener)
    : options_(std::move(options)), pool_(pool), listener_(listener), wake_(executor) {}

bool IntakeGate::is_halted(std::string_view instrument) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(halted_.begin(), halted_.end(),
                     [&](const std::string& halted) { return halted == kAny || halted == instrument; });
}

bool IntakeGate::has_too_much_doubt() const {
  return options_.in_doubt_max > 0 && in_doubt_ >= options_.in_doubt_max;
}

Task<void> IntakeGate::start() {
  co_await read();
  halts_changed_ =
      listener_.subscribe("orders_halts", [this](const pg::Wake&) { wake_.set_from_anywhere(); });
}

void IntakeGate::stop() {
  stop_asked_ = true;
  wake_.set();
}

Task<void> IntakeGate::run() {
  while (!stop_asked_) {
    wake_.reset();
    co_await wake_.wait_for(kReadEvery);
    if (stop_asked_) break;
    std::exception_ptr failure;
    try {
      co_await read();
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure) log::debug("orders", "halts could not be read", {{"error", describe(failure)}});
  }
  halts_changed_ = {};
}

Task<void> IntakeGate::read() {
  const auto deadline = Deadline::after(kReadMax);
  auto lease = co_await pool_.acquire(deadline);
  const auto halts = co_await lease->query(sql::kReadIntakeHalts, {}, deadline);
  std::vector<std::string> halted;
  for (const auto& row : halts) {
    const auto adapter = row.get<std::string>("adapter");
    if (adapter == kAny || adapter == options_.adapter) halted.push_back(row.get<std::string>("instrument"));
  }
  if (options_.in_doubt_max > 0) {
    pg::Params most(options_.in_doubt_max);
    const auto count = co_await lease->query(sql::kCountInDoubt, std::move(most), deadline);
    in_doubt_ = count.one().get<std::int64_t>(0);
  }
  const std::lock_guard lock(mutex_);
  halted_ = std::move(halted);
}

}  // namespace todoke::orders

#include "orders/core/halts.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "orders/core/halts_sql.hpp"
#include "pg/channels.hpp"

namespace todoke::orders {
namespace {

constexpr std::string_view kAll = "*";
constexpr std::chrono::milliseconds kReadMax(2'000);

bool holds_for(const Halt& halt, std::string_view adapter, std::string_view instrument) {
  return (halt.adapter == kAll || halt.adapter == adapter) &&
         (halt.instrument == kAll || halt.instrument == instrument);
}

}  // namespace

bool is_halted(const std::vector<Halt>& halts, std::string_view adapter, std::string_view instrument) {
  return std::any_of(halts.begin(), halts.end(),
                     [&](const Halt& halt) { return holds_for(halt, adapter, instrument); });
}

bool is_intake_refused(const std::vector<Halt>& halts, std::string_view adapter,
                       std::string_view instrument) {
  return std::any_of(halts.begin(), halts.end(), [&](const Halt& halt) {
    return halt.intake_refused && holds_for(halt, adapter, instrument);
  });
}

Halts::Halts(const Executor& executor, pg::Pool& pool, pg::Listener& listener, const Clock& clock,
             metrics::Registry& registry)
    : PeriodicService(executor,
                      {.name = "order halts",
                       .failed = "the kill switch can't be read: nothing is sent meanwhile",
                       .every = kReadEvery},
                      registry),
      pool_(pool),
      listener_(listener),
      clock_(clock),
      halts_(std::make_shared<const std::vector<Halt>>()),
      read_ended_(executor) {}

Task<void> Halts::start() {
  co_await read();
  subscription_ = listener_.subscribe(pg::channels::kOrdersHalts, [this](const pg::Wake&) { wake_up(); });
}

Task<void> Halts::run() {
  co_await PeriodicService::run();
  subscription_ = {};
}

Task<void> Halts::round(RoundCause /*cause*/) {
  return read();
}

Task<HaltList> Halts::current() {
  const auto failures = failures_;
  while (is_stale() && is_reading_) {
    read_ended_.reset();
    co_await read_ended_.wait();
    // The read failed for every caller that waited for it.
    if (failures_ != failures) std::rethrow_exception(failure_);
  }
  if (is_stale()) co_await read();
  co_return known();
}

bool Halts::is_stale() const {
  return !was_read_ || clock_.steady() - read_at_ > kStaleAfter;
}

Task<void> Halts::read() {
  struct Reading {
    explicit Reading(Halts& of) : halts(of) { halts.is_reading_ = true; }
    ~Reading() {
      halts.is_reading_ = false;
      halts.read_ended_.set();
    }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    Halts& halts;
  };
  const Reading reading(*this);
  try {
    co_await read_now();
  } catch (...) {
    failure_ = std::current_exception();
    ++failures_;
    throw;
  }
}

Task<void> Halts::read_now() {
  const auto asked = clock_.steady();
  const auto deadline = Deadline::after(kReadMax);
  const auto lease = co_await pool_.acquire(deadline);
  pg::Params params(kHaltsMax);
  const auto rows = co_await lease->query(sql::kReadHalts, std::move(params), deadline);
  // A slower reader that asked earlier must not undo what a later one found.
  if (was_read_ && asked < read_at_) co_return;
  std::vector<Halt> halts;
  for (const auto& row : rows) {
    halts.push_back({row.get<std::string>(0), row.get<std::string>(1), row.get<bool>(2)});
  }
  if (halts.size() == static_cast<std::size_t>(kHaltsMax)) halts.push_back({"*", "*", false});
  if (was_read_ && halts.size() != known()->size())
    log::warning("orders", "halts changed", {{"halts", halts.size()}});
  halts_.store(std::make_shared<const std::vector<Halt>>(std::move(halts)));
  read_at_ = asked;
  was_read_ = true;
}

}  // namespace todoke::orders

// The side of the link that orders use, its metrics and health, and the loop for late reports.
#include <utility>

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "base/attempt.hpp"
#include "base/log.hpp"
#include "orders/brokers/fix/link.hpp"

namespace todoke::orders {
namespace {

constexpr std::chrono::milliseconds kApplyMax(10'000);
constexpr std::chrono::milliseconds kApplyEvery(1'000);
constexpr std::chrono::hours kForgetEvery(1);
// Handles that were dropped are swept when the map has doubled.
constexpr std::size_t kAwaitedSweepFirst = 64;
// Requests take numbers that no round has counted yet: those since the last round and those that were on
// their way then must fit into the reserved numbers, with room for heartbeats.
constexpr std::int64_t kRequestsOfRound = 40;
static_assert(2 * kRequestsOfRound + 20 <= FixStore::kNumbersAhead);
constexpr double kStateStandby = 0;
constexpr double kStateLoggedOut = 1;
constexpr double kStateLoggedOn = 2;

}  // namespace

bool FixLink::can_send_now() const {
  std::string why;
  return !stopping_ && is_open(why);
}

bool FixLink::is_open(std::string& why) const {
  if (!session_) {
    why = "another worker has the FIX session";
  } else if (!session_->is_logged_on()) {
    why = "the FIX session is not logged on";
  } else if (clock_.steady() >= leased_until_) {
    // A process that slept past it has lost the session and does not know yet.
    why = "the lease of the FIX session has lapsed";
  } else {
    return true;
  }
  return false;
}

std::shared_ptr<FixAwaited> FixLink::await(const std::string& cl_ord_id) {
  auto made = std::make_shared<FixAwaited>(executor_);
  if (awaited_.size() >= awaited_sweep_at_) {
    std::erase_if(awaited_, [](const auto& item) { return item.second.expired(); });
    awaited_sweep_at_ = 2 * awaited_.size() + kAwaitedSweepFirst;
  }
  awaited_[cl_ord_id] = made;
  return made;
}

std::shared_ptr<FixAwaited> FixLink::awaited(const std::string& cl_ord_id) {
  const auto found = awaited_.find(cl_ord_id);
  return found == awaited_.end() ? nullptr : found->second.lock();
}

bool FixLink::is_awaited(const std::string& cl_ord_id) const {
  const auto found = awaited_.find(cl_ord_id);
  return found != awaited_.end() && !found->second.expired();
}

Task<bool> FixLink::write_down(FixEntry entry, Deadline deadline) {
  if (!owning_) co_return false;
  auto waiting = std::make_shared<Waiting>(executor_);
  waiting->entry = std::move(entry);
  unwritten_.push_back(waiting);
  wake_.set();
  const bool ended = co_await waiting->ended.wait_for(deadline.left());
  co_return ended && waiting->is_written;
}

std::function<void(fix::Sent)> FixLink::tell_sent(const std::shared_ptr<FixAwaited>& awaited) const {
  return [executor = executor_, awaited](fix::Sent sent) {
    asio::post(executor, [awaited, sent] {
      awaited->sent = sent;
      awaited->changed.set();
    });
  };
}

bool FixLink::send(const fix::NewOrder& order, Deadline deadline,
                   const std::shared_ptr<FixAwaited>& awaited) {
  return session_ && session_->send(order, deadline.at(), tell_sent(awaited));
}

bool FixLink::send(const fix::StatusRequest& request, Deadline deadline,
                   const std::shared_ptr<FixAwaited>& awaited) {
  if (requests_ >= kRequestsOfRound) return false;
  if (++requests_ >= kRequestsOfRound / 2) wake_.set();
  return session_ && session_->send(request, deadline.at(), tell_sent(awaited));
}

void FixLink::keep_status(fix::Report answer) {
  answer.exec_id = kStatusExecId;
  const auto id = answer.cl_ord_id;
  statuses_[id] = std::move(answer);
  wake_.set();
}

Task<void> FixLink::apply_loop() {
  auto forget_at = clock_.steady();
  while (owning_) {
    apply_wake_.reset();
    const auto applied = co_await attempt(apply_round(forget_at));
    if (!applied) log::warning("fix", "late reports wait", {{"error", describe(applied.error())}});
    if (owning_) co_await apply_wake_.wait_for(kApplyEvery);
  }
}

Task<void> FixLink::apply_round(SteadyTime& forget_at) {
  co_await apply_once();
  if (clock_.steady() < forget_at) co_return;
  co_await ledger_.forget(kKeep, Deadline::after(kApplyMax));
  forget_at = clock_.steady() + kForgetEvery;
}

Task<void> FixLink::apply_once() {
  for (;;) {
    const auto done = co_await ledger_.apply(Deadline::after(kApplyMax));
    late_count_.add(done.updated + done.woken);
    if (done.looked_at < FixLedger::kMost || !owning_) co_return;
  }
}

void FixLink::show() {
  const bool is_logged_on = session_ && session_->is_logged_on();
  if (is_logged_on != was_logged_on_) {
    was_logged_on_ = is_logged_on;
    speaks_since_ = clock_.steady();
    log::info("fix", is_logged_on ? "logged on" : "logged out", {{"session", options_.name}});
  }
  state_.set(!session_ ? kStateStandby : is_logged_on ? kStateLoggedOn : kStateLoggedOut);
  Health health{HealthState::up, "logged on"};
  if (!session_) {
    health.detail = owner_.empty() ? "nobody has the session" : fmt::format("{} has the session", owner_);
  } else if (!is_logged_on) {
    const auto trouble = inbox_->trouble();
    health = {HealthState::degraded,
              fmt::format("not logged on to {}:{}{}{}", options_.session.host, options_.session.port,
                          trouble.empty() ? "" : ": ", trouble)};
  }
  health_.report("fix session", false, health);
}

}  // namespace todoke::orders

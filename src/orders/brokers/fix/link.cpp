#include "orders/brokers/fix/link.hpp"

#include <algorithm>
#include <utility>

#include "base/attempt.hpp"
#include "base/log.hpp"
#include "base/log_rate.hpp"

namespace todoke::orders {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kStatementMax(5'000);
// After a round that failed.
constexpr milliseconds kRetryAfter(250);
// The answer to a Logout.
constexpr milliseconds kLogoutPatience(2'000);
// Lines about messages of the broker that were refused, in a second.
constexpr std::uint64_t kRejectLinesMax = 5;
// The owner takes its lease for so much shorter: clocks run at slightly different speeds, and a message needs
// a moment from the check to the wire.
constexpr milliseconds kLeaseMargin(500);

metrics::Family<metrics::Counter>& reports(metrics::Registry& registry) {
  return registry.counters("orders_fix_reports_total",
                           "Execution reports: stored, repeated (ExecID known), unmatched (no such order) "
                           "and late (settled or added to the ledger afterwards).",
                           {"kind"});
}

metrics::Family<metrics::Counter>& rejects(metrics::Registry& registry) {
  return registry.counters("orders_fix_rejects_sent_total",
                           "Messages of the broker that this side has refused: session (Reject) and business "
                           "(BusinessMessageReject).",
                           {"kind"});
}

}  // namespace

FixLink::FixLink(FixOptions options, const FixLinkParts& parts)
    : options_(std::move(options)),
      executor_(parts.executor),
      clock_(parts.clock),
      health_(parts.health),
      worker_(parts.worker),
      store_(parts.database, parts.pool, options_.name, options_.lease),
      ledger_(parts.database, options_.name),
      wake_(parts.executor),
      apply_wake_(parts.executor),
      loops_(parts.executor, "fix link", [this] { wake_.set(); }),
      state_(parts.metrics.gauge("orders_fix_session_state",
                                 "0 another worker has the session, 1 not logged on, 2 logged on.")),
      stored_count_(reports(parts.metrics).with({"stored"})),
      repeated_count_(reports(parts.metrics).with({"repeated"})),
      unmatched_count_(reports(parts.metrics).with({"unmatched"})),
      late_count_(reports(parts.metrics).with({"late"})),
      taken_count_(parts.metrics.counter("orders_fix_sessions_taken_total",
                                         "How often this worker has taken the FIX session.")),
      session_rejects_(rejects(parts.metrics).with({"session"})),
      business_rejects_(rejects(parts.metrics).with({"business"})) {}

FixLink::~FixLink() = default;

Task<void> FixLink::start() {
  show();
  co_return;
}

void FixLink::stop() {
  stopping_ = true;
  wake_.set();
  apply_wake_.set();
}

Task<void> FixLink::run() {
  while (!stopping_) {
    const bool owned = co_await own_if_free();
    if (owned) continue;
    if (!stopping_) co_await wake_.wait_for(kLookEvery);
    if (!stopping_) wake_.reset();
  }
  store_.close();
  health_.forget("fix session");
}

Task<bool> FixLink::own_if_free() {
  const auto asked = clock_.steady();
  const auto claimed = co_await attempt(claim_session());
  if (!claimed) log::warning("fix", "the session can't be looked at", {{"error", describe(claimed.error())}});
  const bool is_ours = claimed && claimed->has_value();
  if (is_ours) {
    lease_from(asked);
    co_await own(**claimed);
  }
  show();
  co_return is_ours;
}

Task<std::optional<FixOwned>> FixLink::claim_session() {
  const auto owned = co_await store_.claim_session(worker_, Deadline::after(kStatementMax));
  if (!owned) owner_ = co_await store_.owner(Deadline::after(kStatementMax));
  co_return owned;
}

Task<void> FixLink::own(FixOwned owned) {
  taken_count_.add();
  owner_ = worker_;
  log::info("fix", "this worker has the session",
            {{"session", options_.name},
             {"epoch", owned.epoch},
             {"next_out", owned.next_out},
             {"next_in", owned.next_in}});
  std::exception_ptr failure;
  auto end = End::stopped;
  try {
    open_session(owned);
    owning_ = true;
    loops_.launch("late reports", apply_loop());
    end = co_await run_session(owned.epoch);
  } catch (...) {
    failure = std::current_exception();
  }
  co_await close_session(owned.epoch, failure ? End::lost : end);
  if (failure) std::rethrow_exception(failure);
  co_await loops_.join();
}

void FixLink::open_session(const FixOwned& owned) {
  auto settings = options_.session;
  settings.next_out = static_cast<int>(owned.next_out);
  settings.next_in = static_cast<int>(owned.next_in);
  reserved_out_ = owned.next_out + FixStore::kNumbersAhead;
  requests_ = 0;
  resets_ = 0;
  was_logged_on_ = false;
  inbox_ = std::make_shared<FixInbox>([this] { wake_.set_from_anywhere(); });
  session_ = std::make_shared<fix::Session>(std::move(settings), events_of_session());
  session_->allow_until(leased_until_);
  session_->start();
}

// They are called on the session's threads.
fix::Events FixLink::events_of_session() {
  fix::Events events;
  events.report = [inbox = inbox_](fix::Report report) { inbox->push(std::move(report)); };
  events.refused = [inbox = inbox_](fix::Refused refused) { inbox->push(std::move(refused)); };
  const auto rate = std::make_shared<LogRate>(kRejectLinesMax);
  events.rejected = [this, rate](const fix::Rejection& rejection) {
    (rejection.business ? business_rejects_ : session_rejects_).add();
    if (!rate->allows(clock_.steady())) return;
    log::warning("fix", "a message of the broker was refused",
                 {{"kind", rejection.business ? "business" : "session"},
                  {"msg_type", rejection.msg_type},
                  {"tag", rejection.tag},
                  {"reason", rejection.reason},
                  {"report_kept", rejection.was_rescued},
                  {"lines_left_out", rate->take_left_out()}});
  };
  events.logged_on = [this](bool) { wake_.set_from_anywhere(); };
  events.reset = [this] { wake_.set_from_anywhere(); };
  events.note = [](const std::string& text) { log::debug("fix", text); };
  events.trouble = [inbox = inbox_](std::string text) { inbox->set_trouble(std::move(text)); };
  return events;
}

void FixLink::lease_from(SteadyTime asked) {
  leased_until_ = asked + options_.lease - kLeaseMargin;
  if (session_) session_->allow_until(leased_until_);
}

Task<FixLink::End> FixLink::run_session(std::int64_t epoch) {
  const auto renew_every = options_.lease / 3;
  for (;;) {
    if (stopping_ || loops_.has_failed()) co_return End::stopped;
    // Before the state is read: later changes set it again.
    wake_.reset();
    const auto is_ours = co_await attempt(round(epoch));
    show();
    if (is_ours && !*is_ours) {
      log::warning("fix", "another worker has taken the session", {{"session", options_.name}});
      co_return End::lost;
    }
    if (is_ours) {
      if (!stopping_) co_await wake_.wait_for(renew_every);
      continue;
    }
    log::warning("fix", "the session's state can't be written", {{"error", describe(is_ours.error())}});
    if (clock_.steady() >= leased_until_) {
      log::error("fix", "the session's lease has lapsed", {{"session", options_.name}});
      co_return End::lost;
    }
    co_await sleep_for(kRetryAfter);
  }
}

void FixLink::read_inbox() {
  auto came = inbox_->drain();
  for (auto& refused : came.refused) {
    if (const auto waiting = awaited(refused.cl_ord_id)) {
      waiting->refused = std::move(refused);
      waiting->changed.set();
    }
  }
  for (auto& report : came.reports) {
    auto clean = cleaned(std::move(report));
    if (clean.cl_ord_id.empty()) {
      unmatched_count_.add();
      log::warning("fix", "a report without a ClOrdID was left alone");
    } else if (is_status(clean)) {
      const auto waiting = awaited(clean.cl_ord_id);
      if (waiting && waiting->keeps_answers) keep_status(clean);
      answers_.push_back(std::move(clean));
    } else {
      unstored_.push_back(std::move(clean));
    }
  }
}

FixRound FixLink::gather() {
  // The numbers first: every report that they count is in the inbox already, and so in this round.
  const auto numbers = session_->numbers();
  read_inbox();
  FixRound round;
  round.next_in = numbers.next_in;
  round.reports = unstored_;
  for (auto& [id, status] : std::exchange(statuses_, {})) unstored_statuses_[id] = std::move(status);
  for (const auto& [id, status] : unstored_statuses_) round.statuses.push_back(status);
  for (const auto& waiting : writing_) round.entries.push_back(waiting->entry);
  if (numbers.resets != resets_) {
    resets_ = numbers.resets;
    speaks_since_ = clock_.steady();
    reserved_out_ = numbers.next_out;
  }
  reserved_out_ = std::max<std::int64_t>(reserved_out_, numbers.next_out + FixStore::kNumbersAhead) +
                  static_cast<std::int64_t>(writing_.size());
  round.next_out = reserved_out_;
  for (const auto* list : {&round.reports, &answers_}) {
    for (const auto& report : *list) {
      if (awaited(report.cl_ord_id)) round.awaited.push_back(report.cl_ord_id);
    }
  }
  return round;
}

Task<bool> FixLink::round(std::int64_t epoch) {
  writing_.insert(writing_.end(), unwritten_.begin(), unwritten_.end());
  unwritten_.clear();
  const auto requests = requests_;
  const auto work = gather();
  const auto asked = clock_.steady();
  const auto deadline = Deadline::after(std::min(kStatementMax, options_.lease / 2));
  auto end = co_await attempt(store_.write(epoch, work, deadline));
  end_waiting(writing_, end && end->is_ours);
  if (!end) std::rethrow_exception(end.error());
  if (!end->is_ours) co_return false;
  requests_ -= requests;
  lease_from(asked);
  unstored_.clear();
  unstored_statuses_.clear();
  deliver(work, std::move(*end));
  co_return true;
}

void FixLink::deliver(const FixRound& round, FixRoundEnd end) {
  stored_count_.add(static_cast<std::uint64_t>(end.fresh));
  repeated_count_.add(round.reports.size() - static_cast<std::size_t>(end.fresh));
  if (end.unmatched > 0) {
    unmatched_count_.add(static_cast<std::uint64_t>(end.unmatched));
    log::warning("fix", "reports came for orders that did not go out from here",
                 {{"reports", end.unmatched}});
  }
  bool has_late = false;
  for (const auto& report : round.reports) {
    if (!awaited(report.cl_ord_id)) has_late = true;
  }
  for (auto& [id, stored] : end.awaited) {
    const auto waiting = awaited(id);
    if (waiting && !waiting->answers_only) {
      waiting->reports = std::move(stored);
      waiting->changed.set();
    }
  }
  for (auto& answer : answers_) {
    if (const auto waiting = awaited(answer.cl_ord_id)) {
      waiting->answers.push_back(std::move(answer));
      waiting->changed.set();
    }
  }
  answers_.clear();
  if (has_late || !round.statuses.empty()) apply_wake_.set();
}

void FixLink::end_waiting(std::vector<std::shared_ptr<Waiting>>& orders, bool written) {
  for (const auto& order : orders) {
    order->is_written = written;
    order->ended.set();
  }
  orders.clear();
}

Task<void> FixLink::give_session_up(std::int64_t epoch) {
  const bool is_ours = co_await round(epoch);
  if (is_ours) co_await store_.give_up(epoch, session_->numbers(), Deadline::after(kStatementMax));
}

Task<void> FixLink::close_session(std::int64_t epoch, End end) {
  owning_ = false;
  end_waiting(unwritten_, false);
  end_waiting(writing_, false);
  apply_wake_.set();
  if (session_) {
    inbox_->close();
    const auto session = session_;
    const std::function<void()> stop = [session] { session->stop(kLogoutPatience); };
    co_await run_blocking(stop);
    co_await loops_.wait();
  }
  if (session_ && end == End::stopped) {
    const auto given_up = co_await attempt(give_session_up(epoch));
    if (!given_up) {
      log::warning("fix", "the session was not given up", {{"error", describe(given_up.error())}});
    }
  }
  session_.reset();
  inbox_.reset();
  unstored_.clear();
  statuses_.clear();
  unstored_statuses_.clear();
  answers_.clear();
  ledger_.close();
  owner_.clear();
}

}  // namespace todoke::orders

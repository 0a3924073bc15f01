#include "orders/brokers/fix/watch.hpp"

#include <optional>
#include <utility>

#include "base/log.hpp"
#include "orders/brokers/fix/fix_sql.hpp"
#include "orders/core/order.hpp"

namespace todoke::orders {
namespace {

metrics::Family<metrics::Counter>& answers(metrics::Registry& registry) {
  return registry.counters(
      "orders_fix_questions_total",
      "Questions to the broker about orders in doubt and orders that it works on: found and "
      "not_found there, unknown (it could not be asked, or did not answer).",
      {"answer"});
}

}  // namespace

FixWatch::FixWatch(std::shared_ptr<FixLink> link, const FixWatchParts& parts)
    : PeriodicService(parts.executor,
                      {.name = "fix watch",
                       .failed = "the broker is asked later",
                       .every = kLookEvery,
                       .begins_at_once = true},
                      parts.metrics),
      link_(std::move(link)),
      adapter_(link_),
      clock_(parts.clock),
      pool_(parts.pool),
      broker_timeout_(parts.broker_timeout),
      ask_every_(parts.ask_every),
      pace_(link_->options().questions_per_sec),
      unanswered_(parts.repeats, parts.ask_every),
      silence_(parts.repeats),
      lanes_(parts.executor, "fix watch", [this] { next_ = page_.size(); }),
      found_(answers(parts.metrics).with({"found"})),
      not_found_(answers(parts.metrics).with({"not_found"})),
      unknown_(answers(parts.metrics).with({"unknown"})) {}

Task<void> FixWatch::round(RoundCause /*cause*/) {
  const auto since = link_->speaks_since();
  if (std::exchange(speaks_since_, since) != since) silence_.end();
  bool is_more = true;
  while (is_more && may_ask()) is_more = co_await ask_some();
}

bool FixWatch::may_ask() const {
  std::string why;
  return !stop_asked() && link_->is_open(why) && !silence_.is_pause(clock_.steady());
}

// Orders with a question from before the logon or the reset count as due, and those whose time has come.
double FixWatch::asked_before_seconds() const {
  const auto since = clock_.steady() - link_->speaks_since();
  return std::chrono::duration<double>(std::min<SteadyTime::duration>(since, ask_every_)).count();
}

Task<bool> FixWatch::ask_some() {
  page_ = unanswered_.due(clock_.steady());
  bool is_full = !page_.empty();
  if (page_.empty()) page_ = co_await read_page(is_full);
  next_ = 0;
  const auto lanes = std::min(kUnderWayMax, page_.size());
  for (std::size_t i = 0; i < lanes; ++i) lanes_.launch("lane", ask_page());
  co_await lanes_.join();
  co_return is_full;
}

Task<std::vector<WatchedOrder>> FixWatch::read_page(bool& is_full) {
  const auto deadline = Deadline::after(kStatementMax);
  const auto lease = co_await pool_.acquire(deadline);
  pg::Params params(link_->options().name, asked_before_seconds(), static_cast<std::int64_t>(kPageMax));
  const auto rows = co_await lease->query(sql::kFixWatched, std::move(params), deadline);
  is_full = rows.size() == kPageMax;
  std::vector<WatchedOrder> page;
  for (const auto& row : rows) {
    unanswered_.remove(row.get<std::int64_t>("outbox_id"));
    if (!row.get<bool>("is_doubtful")) continue;
    page.push_back({row.get<std::int64_t>("outbox_id"), row.get<std::string>("cl_ord_id"),
                    row.get<std::optional<std::string>>("document").value_or("")});
  }
  co_return page;
}

// One of several that share the page.
Task<void> FixWatch::ask_page() {
  while (next_ < page_.size()) {
    const auto order = page_[next_++];
    co_await wait_for_turn();
    if (!may_ask()) co_return;
    co_await ask(order);
  }
}

Task<void> FixWatch::ask(const WatchedOrder& watched) {
  const auto order = parse_order(watched.document);
  if (!order) co_return;  // it was never sent
  SendRequest request;
  request.order = &*order;
  request.outbox_id = watched.outbox_id;
  request.broker_id = watched.cl_ord_id;
  const auto deadline = Deadline::after(broker_timeout_);
  const auto outcome = co_await adapter_.ask_broker(std::move(request), deadline);
  if (outcome.answer == FindAnswer::unknown) {
    unknown_.add();
    if (deadline.passed()) {
      note_silence(watched);
    } else {
      // The question did not leave: the order gets another turn, or all do after the next logon.
      unanswered_.remove(watched.outbox_id);
    }
    co_return;
  }
  silence_.end();
  unanswered_.remove(watched.outbox_id);
  (outcome.answer == FindAnswer::found ? found_ : not_found_).add();
}

void FixWatch::note_silence(const WatchedOrder& order) {
  const auto now = clock_.steady();
  unanswered_.add(order, now);
  if (!silence_.add(now)) return;
  log::warning("fix", "the broker does not answer status requests: it is asked again later",
               {{"questions", FixSilence::kInARow}});
}

Task<void> FixWatch::wait_for_turn() {
  const auto now = clock_.steady();
  const auto turn = pace_.next_turn(now);
  if (turn > now) co_await pause(turn - now);
}

}  // namespace todoke::orders

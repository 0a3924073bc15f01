#include "orders/brokers/fix/questions.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"
#include "orders/brokers/fix/questions_sql.hpp"
#include "orders/core/order.hpp"

namespace todoke::orders {
namespace {

metrics::Family<metrics::Counter>& answers(metrics::Registry& registry) {
  return registry.counters(
      "orders_fix_questions_total",
      "Questions of `todoke orders reconcile`: found and not_found at the broker, "
      "unknown (it could not be asked, or did not answer), swept (nobody took them away).",
      {"answer"});
}

std::string_view text_of(FindAnswer answer) {
  switch (answer) {
    case FindAnswer::found:
      return "found";
    case FindAnswer::not_found:
      return "not_found";
    case FindAnswer::unknown:
      break;
  }
  return "unknown";
}

}  // namespace

FixQuestions::FixQuestions(std::shared_ptr<FixLink> link, const FixQuestionsParts& parts)
    : link_(std::move(link)),
      adapter_(link_),
      executor_(parts.executor),
      clock_(parts.clock),
      pool_(parts.pool),
      listener_(parts.listener),
      broker_timeout_(parts.broker_timeout),
      pace_(link_->options().questions_per_sec),
      lanes_(parts.executor, "fix questions", [this] { next_ = page_.size(); }),
      wake_(parts.executor),
      stop_asked_(parts.executor),
      found_(answers(parts.metrics).with({"found"})),
      not_found_(answers(parts.metrics).with({"not_found"})),
      unknown_(answers(parts.metrics).with({"unknown"})),
      swept_(answers(parts.metrics).with({"swept"})) {}

Task<void> FixQuestions::start() {
  subscription_ = listener_.subscribe("orders_questions", [this](const pg::Wake&) { wake_.set(); });
  co_return;
}

void FixQuestions::stop() {
  stop_asked_.set();
  wake_.set();
}

Task<void> FixQuestions::run() {
  while (!stop_asked_.is_set()) {
    wake_.reset();
    std::exception_ptr failure;
    bool had_some = false;
    try {
      if (may_ask()) had_some = co_await look();
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure) log::warning("fix", "questions wait", {{"error", describe(failure)}});
    if (!had_some && !stop_asked_.is_set()) co_await wake_.wait_for(kLookEvery);
  }
  subscription_ = {};
}

Task<bool> FixQuestions::look() {
  page_ = co_await read_page();
  if (page_.empty()) {
    silent_ = 0;
    co_return false;
  }
  next_ = 0;
  const auto lanes = std::min(kUnderWayMax, page_.size());
  for (std::size_t i = 0; i < lanes; ++i) lanes_.launch("lane", answer_page());
  co_await lanes_.join();
  co_return true;
}

Task<std::vector<FixQuestions::Question>> FixQuestions::read_page() {
  const auto deadline = Deadline::after(kStatementMax);
  const auto lease = co_await pool_.acquire(deadline);
  pg::Batch batch;
  batch.add(sql::kQuestionSweep, pg::Params(static_cast<double>(kKeep.count())));
  batch.add(sql::kQuestionOpen, pg::Params(link_->options().name, static_cast<std::int64_t>(kPageMax)));
  const auto results = co_await lease->run(std::move(batch), deadline);
  if (const auto swept = results.at(0).affected(); swept > 0) {
    swept_.add(static_cast<std::uint64_t>(swept));
    log::warning("fix", "questions were swept that nobody took away", {{"questions", swept}});
  }
  std::vector<Question> page;
  for (const auto& row : results.at(1)) {
    page.push_back({row.get<std::vector<std::int64_t>>("ids"), row.get<std::int64_t>("outbox_id"),
                    row.get<std::string>("cl_ord_id"),
                    row.get<std::optional<std::string>>("document").value_or("")});
  }
  co_return page;
}

// One of several that share the page.
Task<void> FixQuestions::answer_page() {
  while (may_ask() && next_ < page_.size()) {
    const auto question = page_[next_++];
    const auto outcome = co_await outcome_of(question);
    co_await write(question, outcome);
  }
}

Task<FindOutcome> FixQuestions::outcome_of(const Question& question) {
  if (silent_ < kSilentMax) {
    co_await wait_for_turn();
    co_return co_await ask(question);
  }
  co_return unknown(fmt::format("it did not answer the last {} questions", silent_));
}

Task<FindOutcome> FixQuestions::ask(const Question& question) {
  const auto order = parse_order(question.document);
  if (!order) co_return unknown("what is stored is no order");
  SendRequest request;
  request.order = &*order;
  request.outbox_id = question.outbox_id;
  request.broker_id = question.cl_ord_id;
  const auto deadline = Deadline::after(broker_timeout_);
  auto outcome = co_await adapter_.ask_broker(std::move(request), deadline);
  if (outcome.answer != FindAnswer::unknown) {
    silent_ = 0;
  } else if (deadline.passed()) {
    ++silent_;
  }
  co_return outcome;
}

Task<void> FixQuestions::write(const Question& question, const FindOutcome& outcome) {
  std::optional<bool> is_taken;
  std::optional<std::string> qty;
  std::optional<std::string> message;
  switch (outcome.answer) {
    case FindAnswer::found:
      is_taken = outcome.result.status == ExecStatus::ok;
      qty = outcome.result.executed_qty.text();
      found_.add(question.ids.size());
      break;
    case FindAnswer::not_found:
      not_found_.add(question.ids.size());
      break;
    case FindAnswer::unknown:
      message = outcome.message;
      unknown_.add(question.ids.size());
      break;
  }
  const auto deadline = Deadline::after(kStatementMax);
  const auto lease = co_await pool_.acquire(deadline);
  pg::Params params(question.ids, text_of(outcome.answer), is_taken, qty, message);
  co_await lease->query(sql::kQuestionAnswer, std::move(params), deadline);
}

Task<void> FixQuestions::wait_for_turn() {
  const auto now = clock_.steady();
  const auto turn = pace_.take(now);
  if (turn > now) co_await stop_asked_.wait_for(turn - now);
}

}  // namespace todoke::orders

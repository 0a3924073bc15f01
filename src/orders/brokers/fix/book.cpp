#include "orders/brokers/fix/book.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "orders/brokers/fix/questions.hpp"
#include "orders/brokers/fix/questions_sql.hpp"

namespace todoke::orders {
namespace {

constexpr std::size_t kRunRandomBytes = 8;

FindOutcome outcome_from(const pg::Row& row, std::chrono::milliseconds patience) {
  const auto answer = row.get<std::optional<std::string>>("answer");
  if (!answer) {
    return unknown(fmt::format("no word from the worker that has the session in {} s",
                               std::chrono::ceil<std::chrono::seconds>(patience).count()));
  }
  if (*answer == "unknown") return unknown(row.get<std::string>("message"));
  FindOutcome outcome;
  outcome.answer = *answer == "found" ? FindAnswer::found : FindAnswer::not_found;
  outcome.result.status = row.get<bool>("is_taken") ? ExecStatus::ok : ExecStatus::error;
  const auto qty = Decimal::parse(row.get<std::optional<std::string>>("executed_qty").value_or("0"));
  if (!qty) return unknown("its quantity can't be read");
  outcome.result.executed_qty = *qty;
  return outcome;
}

}  // namespace

FixBook::FixBook(pg::ConnectOptions connect, std::chrono::milliseconds patience)
    : connect_(std::move(connect)), patience_(patience), run_(random_hex(kRunRandomBytes)) {}

Task<pg::Connection*> FixBook::connection() {
  if (!connection_) {
    const auto deadline = Deadline::after(kStatementMax);
    auto fresh = co_await pg::Connection::connect(connect_, deadline);
    co_await fresh->execute_script("LISTEN orders_answers", deadline);
    connection_ = std::move(fresh);
  }
  co_return connection_.get();
}

Task<BrokerBook::Answers> FixBook::ask(std::vector<AskedOrder> orders) {
  Answers answers;
  std::span<const AskedOrder> rest(orders);
  while (!rest.empty()) {
    const auto some = rest.first(std::min(rest.size(), kWaitingMax));
    rest = rest.subspan(some.size());
    co_await ask_some(some, answers);
  }
  co_return answers;
}

Task<void> FixBook::ask_some(std::span<const AskedOrder> orders, Answers& answers) {
  Outcomes outcomes;
  const auto asked = co_await put(orders, outcomes, answers);
  if (!asked.empty()) {
    co_await wait_for_answers();
    co_await collect(outcomes);
    close_silent(asked, outcomes, answers);
  }
  for (const auto& order : orders) answers.of.push_back(std::move(outcomes[order.outbox_id]));
}

Task<std::map<std::int64_t, std::string>> FixBook::put(std::span<const AskedOrder> orders, Outcomes& outcomes,
                                                       Answers& answers) {
  std::vector<std::int64_t> ids;
  for (const auto& order : orders) {
    ids.push_back(order.outbox_id);
    outcomes[order.outbox_id] = unknown("the journal has no ClOrdID of it");
  }
  auto* connection = co_await this->connection();
  const std::vector<std::string> closed(closed_.begin(), closed_.end());
  pg::Batch batch;
  batch.add(sql::kQuestionSweep, pg::Params(static_cast<double>(FixQuestions::kKeep.count())));
  batch.add(sql::kQuestionAsk, pg::Params(ids, run_, kWaitingOfAllMax, closed));
  batch.add(sql::kQuestionTell);
  const auto results = co_await connection->run(std::move(batch), Deadline::after(kStatementMax));

  std::map<std::int64_t, std::string> asked;
  for (const auto& row : results.at(1)) {
    auto session = row.get<std::string>("session");
    const auto id = row.get<std::int64_t>("outbox_id");
    auto& outcome = outcomes[id];
    if (row.get<bool>("is_asked")) {
      outcome = unknown("its question was swept");
      asked[id] = std::move(session);
    } else if (row.get<bool>("is_of_another")) {
      outcome = unknown("another order has gone out with its ClOrdID");
    } else if (session.empty()) {
      outcome = unknown("it is not written down which FIX session it belongs to");
    } else if (closed_.contains(session)) {
      outcome.reset();
    } else if (!row.get<bool>("has_owner")) {
      outcome.reset();
      answers.notices.push_back(fmt::format(
          "no worker has the FIX session {}: the broker can't be asked about its orders", session));
      closed_.insert(std::move(session));
    } else {
      outcome = unknown(fmt::format("{} questions wait already", kWaitingOfAllMax));
    }
  }
  co_return asked;
}

Task<void> FixBook::wait_for_answers() {
  std::optional<std::int64_t> waiting;
  auto until = Deadline::after(patience_);
  while (!until.passed()) {
    pg::Params params(run_);
    const auto rows =
        co_await connection_->query(sql::kQuestionCount, std::move(params), Deadline::after(kStatementMax));
    const auto now = rows.one().get<std::int64_t>(0);
    if (now == 0) co_return;
    if (waiting != now) until = Deadline::after(patience_);
    waiting = now;
    const auto look = std::min<std::chrono::nanoseconds>(kLookEvery, until.left());
    co_await connection_->notifications(Deadline::after(look));
  }
}

Task<void> FixBook::collect(Outcomes& outcomes) {
  pg::Params params(run_);
  const auto rows =
      co_await connection_->query(sql::kQuestionCollect, std::move(params), Deadline::after(kStatementMax));
  for (const auto& row : rows) {
    outcomes[row.get<std::int64_t>("outbox_id")] = outcome_from(row, patience_);
  }
}

void FixBook::close_silent(const std::map<std::int64_t, std::string>& asked, const Outcomes& outcomes,
                           Answers& answers) {
  std::map<std::string, std::size_t> unanswered;
  std::set<std::string> answering;
  for (const auto& [id, session] : asked) {
    if (outcomes.at(id)->answer == FindAnswer::unknown) {
      ++unanswered[session];
    } else {
      answering.insert(session);
    }
  }
  for (const auto& [session, count] : unanswered) {
    if (count < kSilentMin || answering.contains(session)) continue;
    answers.notices.push_back(fmt::format(
        "none of {} questions on the FIX session {} was answered: the broker is not asked any more", count,
        session));
    closed_.insert(session);
  }
}

}  // namespace todoke::orders

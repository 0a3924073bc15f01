#include "orders/brokers/fix/book.hpp"

#include <map>
#include <utility>

#include <fmt/format.h>

#include "orders/brokers/fix/fix_sql.hpp"
#include "orders/brokers/fix/report.hpp"
#include "orders/brokers/fix/store.hpp"

namespace todoke::orders {
namespace {

// The column at which the report begins in a row of fix_told.
constexpr std::size_t kReportAt = 5;

FindOutcome outcome_of(const std::vector<fix::Report>& reports, const Order& order) {
  if (reports.empty()) return unknown("it has said nothing of the order");
  const bool is_asked_last = is_status(reports.back());
  const auto view =
      is_asked_last ? view_of({reports.back()}, order.time_in_force) : view_of(reports, order.time_in_force);
  FindOutcome outcome;
  if (view.is_unknown) {
    outcome.answer = FindAnswer::not_found;
    return outcome;
  }
  if (!view.is_acknowledged() && view.state != FixView::State::rejected) {
    return unknown("it has not said whether it took the order");
  }
  outcome.answer = FindAnswer::found;
  outcome.result = result_of(view, order);
  return outcome;
}

}  // namespace

// One order, as the tables have it.
struct FixBook::Told {
  std::string session;         // empty: it is not known
  bool is_of_another = false;  // another order has gone out with the same ClOrdID
  bool is_watched = false;     // it is in doubt, or the broker works on it
  bool has_owner = false;      // a worker has the session
  std::vector<fix::Report> reports;
};

Task<BrokerBook::Answers> FixBook::ask(std::vector<AskedOrder> orders) {
  std::vector<std::int64_t> ids;
  for (const auto& order : orders) ids.push_back(order.outbox_id);
  const auto deadline = Deadline::after(kStatementMax);
  const auto lease = co_await pool_.acquire(deadline);
  pg::Params params(ids);
  const auto rows = co_await lease->query(sql::kFixTold, std::move(params), deadline);
  std::map<std::int64_t, Told> told;
  for (const auto& row : rows) {
    auto& one = told[row.get<std::int64_t>(0)];
    one.session = row.get<std::string>(1);
    one.is_of_another = row.get<bool>(2);
    one.is_watched = row.get<bool>(3);
    one.has_owner = row.get<bool>(4);
    if (row.get<std::optional<std::string>>(kReportAt)) one.reports.push_back(report_from(row, kReportAt));
  }
  Answers answers;
  for (const auto& order : orders) {
    const auto found = told.find(order.outbox_id);
    if (found == told.end()) {
      answers.of.emplace_back(unknown("the journal has no ClOrdID of it"));
    } else {
      answer(order, found->second, answers);
    }
  }
  co_return answers;
}

void FixBook::answer(const AskedOrder& order, const Told& told, Answers& answers) {
  if (told.is_of_another && told.reports.empty()) {
    answers.of.emplace_back(unknown("another order has gone out with its ClOrdID"));
  } else if (told.session.empty()) {
    answers.of.emplace_back(unknown("it is not written down which FIX session it belongs to"));
  } else if (told.is_watched && !told.has_owner) {
    answers.of.emplace_back(std::nullopt);
    if (ownerless_.insert(told.session).second) {
      answers.notices.push_back(
          fmt::format("no worker has the FIX session {}: nobody asks the broker about its orders that are in "
                      "doubt or work",
                      told.session));
    }
  } else {
    answers.of.emplace_back(outcome_of(told.reports, order.order));
  }
}

}  // namespace todoke::orders

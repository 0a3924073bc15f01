#include "orders/reconcile.hpp"

#include <utility>

#include <fmt/format.h>

#include "orders/order_parse.hpp"
#include "orders/reconcile_sql.hpp"

namespace todoke::orders {
namespace {

constexpr std::int64_t kPageRows = 500;
constexpr std::chrono::seconds kPageMax(60);

std::string text_or_none(const std::optional<std::string>& text) {
  return text.value_or("nothing");
}

void compare_broker(const OrderBooks& books, std::vector<std::string>& found) {
  if (!books.broker) return;
  const auto& broker = *books.broker;
  const bool executed = broker.answer == FindAnswer::found && broker.result.status == ExecStatus::ok;
  if (broker.answer == FindAnswer::unknown) {
    found.push_back("the broker could not be asked: " + broker.message);
  } else if (executed && !books.succeeded) {
    found.push_back(
        fmt::format("the broker has it, executed {}; here it is aborted", broker.result.executed_qty.text()));
  } else if (!executed && books.succeeded && !books.settled_by_hand) {
    found.emplace_back("here it succeeded; the broker does not have it");
  } else if (executed && books.executed_qty && *books.executed_qty != broker.result.executed_qty) {
    found.push_back(fmt::format("the ledger has executed_qty {}, the broker {}", books.executed_qty->text(),
                                broker.result.executed_qty.text()));
  }
}

OrderBooks books_of(const pg::Row& row) {
  OrderBooks books;
  books.succeeded = row.get<std::string_view>("status") == "succeeded";
  books.is_conflict = row.get<bool>("is_conflict");
  books.ledger_status = row.get<std::optional<std::string>>("ledger_status");
  books.ledger_may_be_gone = row.get<bool>("archived");
  if (const auto qty = row.get<std::optional<std::string>>("executed_qty")) {
    if (auto number = Decimal::parse(*qty)) books.executed_qty = std::move(*number);
  }
  books.journal_has_success = row.get<std::int64_t>("successes") > 0;
  books.settled_by_hand = row.get<bool>("by_hand");
  return books;
}

// Nothing: what is stored is no order, so it was never sent.
Task<std::optional<FindOutcome>> ask(BrokerAdapter& broker, const pg::Row& row, Deadline deadline) {
  const auto order = parse_order(row.get<std::string>("document"));
  if (!order) co_return std::nullopt;
  SendRequest request;
  request.order = &*order;
  request.idempotency_key = row.get<std::string>("idempotency_key");
  request.broker_id = broker.broker_id(request.idempotency_key);
  co_return co_await broker.find(std::move(request), deadline);
}

}  // namespace

std::vector<std::string> differences(const OrderBooks& books) {
  std::vector<std::string> found;
  const std::string wanted = books.succeeded ? "succeeded" : "failed";
  const bool is_gone = !books.ledger_status && books.ledger_may_be_gone;
  if (!books.is_conflict && !is_gone && books.ledger_status != wanted) {
    found.push_back(fmt::format("the outbox says {}, the ledger {}",
                                books.succeeded ? "succeeded" : "aborted",
                                text_or_none(books.ledger_status)));
  }
  if (books.succeeded && !books.journal_has_success && !books.settled_by_hand) {
    found.emplace_back("it succeeded, but no try in the journal did");
  }
  if (!books.succeeded && books.journal_has_success) {
    found.emplace_back("it is aborted, but a try in the journal succeeded");
  }
  compare_broker(books, found);
  return found;
}

Task<ReconcileProgress> reconcile(pg::Connection& connection, ReconcileOptions options) {
  ReconcileProgress progress;
  std::int64_t after = 0;
  for (;;) {
    pg::Params params(options.adapter, options.since, after, kPageRows);
    const auto rows =
        co_await connection.query(sql::kReconcilePage, std::move(params), Deadline::after(kPageMax));
    for (const auto& row : rows) {
      after = row.get<std::int64_t>("id");
      if (row.get<std::int64_t>("tries") == 0 && row.get<std::int64_t>("others") > 0) continue;
      ++progress.orders;
      const auto status = row.get<std::string>("status");
      if (status != "succeeded" && status != "aborted") {
        ++progress.open;
        continue;
      }
      auto books = books_of(row);
      if (options.broker != nullptr && row.get<std::int64_t>("tries") > 0) {
        ++progress.asked;
        books.broker = co_await ask(*options.broker, row, Deadline::after(options.broker_timeout));
      }
      const auto found = differences(books);
      if (!found.empty()) ++progress.different;
      for (const auto& difference : found) {
        options.on_difference(after, row.get<std::string>("key_hash"), difference);
      }
    }
    options.on_progress(progress);
    if (rows.size() < static_cast<std::size_t>(kPageRows)) co_return progress;
  }
}

}  // namespace todoke::orders

#include "orders/admin/reconcile.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "orders/admin/reconcile_sql.hpp"
#include "orders/core/order.hpp"

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
    found.push_back("what the broker has is not known: " + broker.message);
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

struct Line {
  std::int64_t id = 0;
  std::string key_hash;
  bool is_open = false;  // not settled yet
  OrderBooks books;
  std::optional<AskedOrder> question;  // none: it never went to the broker
  std::vector<std::string> found;
};

Line line_of(const pg::Row& row) {
  Line line;
  line.id = row.get<std::int64_t>("id");
  line.key_hash = row.get<std::string>("key_hash");
  const auto status = row.get<std::string_view>("status");
  line.is_open = status != "succeeded" && status != "aborted";
  line.books = books_of(row);
  if (line.is_open || row.get<std::int64_t>("tries") == 0) return line;
  // The stored document is no order: no worker ever sent it.
  auto order = parse_order(row.get<std::string>("document"));
  if (order) line.question = AskedOrder{line.id, row.get<std::string>("idempotency_key"), std::move(*order)};
  return line;
}

class Reconciliation {
 public:
  Reconciliation(pg::Connection& connection, ReconcileOptions options)
      : connection_(connection), options_(std::move(options)) {}

  Task<ReconcileProgress> run() {
    for (bool is_last = false; !is_last;) {
      const auto after = after_;
      auto page = co_await read(after, is_last);
      co_await ask(page);
      for (auto& line : page) {
        if (!line.is_open) line.found = differences(line.books);
      }
      co_await ask_broker_again(page, after);
      report(page);
    }
    co_return progress_;
  }

 private:
  Task<std::vector<Line>> read(std::int64_t after, bool& is_last) {
    pg::Params params(options_.adapter, options_.since, after, kPageRows);
    const auto rows =
        co_await connection_.query(sql::kReconcilePage, std::move(params), Deadline::after(kPageMax));
    is_last = rows.size() < static_cast<std::size_t>(kPageRows);
    std::vector<Line> page;
    for (const auto& row : rows) {
      after_ = row.get<std::int64_t>("id");
      const bool is_of_others = row.get<std::int64_t>("tries") == 0 && row.get<std::int64_t>("others") > 0;
      if (!is_of_others) page.push_back(line_of(row));
    }
    co_return page;
  }

  Task<void> ask(std::vector<Line>& page) {
    if (options_.broker == nullptr) co_return;
    std::vector<AskedOrder> orders;
    for (const auto& line : page) {
      if (line.question) orders.push_back(*line.question);
    }
    auto answers = co_await options_.broker->ask(std::move(orders));
    for (const auto& notice : answers.notices) options_.on_notice(notice);
    std::size_t next = 0;
    for (auto& line : page) {
      if (!line.question) continue;
      line.books.broker = std::move(answers.of.at(next++));
      ++(line.books.broker ? progress_.asked : progress_.not_asked);
    }
  }

  Task<void> ask_broker_again(std::vector<Line>& page, std::int64_t after) {
    const bool has_any = std::any_of(page.begin(), page.end(), may_have_moved);
    if (!has_any) co_return;
    co_await sleep_for(kSecondLookAfter);
    const auto last = after_;
    bool is_last = false;
    const auto again = co_await read(after, is_last);
    after_ = last;
    std::map<std::int64_t, const Line*> now;
    for (const auto& line : again) now[line.id] = &line;
    for (auto& line : page) {
      const auto found = now.find(line.id);
      if (!may_have_moved(line) || found == now.end()) continue;
      auto books = found->second->books;
      books.broker = line.books.broker;
      line.found = differences(books);
      const bool has_changed = found->second->is_open || !books.is_same_order_as(line.books);
      if (!has_changed || line.found.empty()) continue;
      ++progress_.changed;
      line.found.clear();
    }
  }
  static bool may_have_moved(const Line& line) {
    return !line.found.empty() && line.books.broker && line.books.broker->answer != FindAnswer::unknown;
  }

  void report(const std::vector<Line>& page) {
    for (const auto& line : page) {
      ++progress_.orders;
      if (line.is_open) ++progress_.open;
      if (!line.found.empty()) ++progress_.different;
      for (const auto& difference : line.found) options_.on_difference(line.id, line.key_hash, difference);
    }
    options_.on_progress(progress_);
  }

  pg::Connection& connection_;
  ReconcileOptions options_;
  ReconcileProgress progress_;
  std::int64_t after_ = 0;
};

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
  Reconciliation reconciliation(connection, std::move(options));
  co_return co_await reconciliation.run();
}

}  // namespace todoke::orders

#include "orders/worker/history.hpp"

#include <exception>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "orders/worker/retention_sql.hpp"

namespace todoke::orders {
namespace {

constexpr std::int64_t kBookRows = 10'000;

}  // namespace

Task<void> drop_history(pg::Connection& connection, std::int64_t months, metrics::Counter& dropped,
                        Deadline deadline) {
  pg::Params age(months);
  const auto old = co_await connection.query(sql::kOldOrderPartitions, std::move(age), deadline);
  for (const auto& row : old) {
    const auto table = row.get<std::string>(0);
    std::exception_ptr failure;
    try {
      pg::Params partition(table);
      co_await connection.query(sql::kDropOldOrderPartition, std::move(partition), deadline);
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure) {
      log::warning("orders", "old history was not dropped", {{"table", table}, {"error", describe(failure)}});
      if (!connection.usable()) std::rethrow_exception(failure);
      continue;
    }
    dropped.add();
    log::info("orders", "old history was dropped", {{"table", table}});
  }
  pg::Params book(months, kBookRows);
  co_await connection.query(sql::kForgetPaperOrders, std::move(book), deadline);
}

}  // namespace todoke::orders

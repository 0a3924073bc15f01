#include "orders/core/gauges.hpp"

#include <utility>

#include "orders/core/gauges_sql.hpp"

namespace todoke::orders {

Task<OrderGauges> read_gauges(pg::Connection& connection, Deadline deadline) {
  pg::Params gone_after(std::chrono::duration<double>(kWorkerGoneAfter).count());
  const auto rows = co_await connection.query(sql::kGauges, std::move(gone_after), deadline);
  const auto row = rows.one();
  co_return OrderGauges{row.get<double>("oldest_pending"), row.get<std::int64_t>("in_doubt"),
                        row.get<std::int64_t>("workers"),  row.get<std::int64_t>("halts"),
                        row.get<std::string>("adapters"),  row.get<std::string>("orphaned")};
}

}  // namespace todoke::orders

#include "orders/core/db_link.hpp"

namespace todoke::orders {

namespace {

// No statement of the worker waits for a row of the ledger longer than half a second: only an operator's open
// transaction holds one longer. With bitmap scans Postgres would sort all waiting rows before it claims one.
constexpr const char* kSession =
    "SET orders.actor = 'worker'; SET enable_seqscan = off; SET enable_bitmapscan = off;"
    "SET enable_hashjoin = off; SET enable_mergejoin = off; SET plan_cache_mode = force_generic_plan; SET "
    "jit = off; SET lock_timeout = '500ms'";

}  // namespace

Task<pg::Connection*> DbLink::get(Deadline deadline) {
  if (connection_ && !connection_->usable()) connection_.reset();
  if (!connection_) {
    auto fresh = co_await pg::Connection::connect(options_, deadline);
    co_await fresh->execute_script(kSession, deadline);
    connection_ = std::move(fresh);
  }
  if (connection_->in_transaction()) co_await connection_->end_transaction(deadline);
  co_return connection_.get();
}

}  // namespace todoke::orders

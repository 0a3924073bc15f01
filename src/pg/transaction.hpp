// A transaction over several round trips, READ COMMITTED whatever the server's default is. Dropped without
// commit() it is rolled back: by the pool as soon as the connection comes back, or by the connection's next
// call. A batch (connection.hpp) is cheaper where no statement needs the result of another.
//
//   auto tx = co_await pg::begin(conn, deadline);
//   ... co_await conn.query(...) ...
//   co_await tx.commit(deadline);
#pragma once

#include "pg/connection.hpp"

namespace todoke::pg {

class Transaction {
 public:
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();

  // Throws CommitOutcomeUnknown when the answer never came. A transaction that has failed before is not
  // committed; that throws an Error with SQLSTATE 25P02. Over in any case, unless the deadline had passed
  // before anything was sent.
  Task<void> commit(Deadline deadline);
  Task<void> rollback(Deadline deadline);

 private:
  friend Task<Transaction> begin(Connection& connection, Deadline deadline);
  explicit Transaction(Connection& connection) : connection_(&connection) {}
  Connection* connection_;  // null when it is over
};

// Throws std::logic_error inside of another transaction.
Task<Transaction> begin(Connection& connection, Deadline deadline);

}  // namespace todoke::pg

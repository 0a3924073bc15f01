#include "pg/transaction.hpp"

#include <stdexcept>
#include <utility>

#include "pg/connection_state.hpp"

namespace todoke::pg {

namespace {
constexpr Statement kBeginReadCommitted{"begin_read_committed", "BEGIN ISOLATION LEVEL READ COMMITTED"};
constexpr Statement kCommitTransaction{"commit", "COMMIT"};

[[noreturn]] void throw_not_committed() {
  Error::Fields fields;
  fields.sqlstate = "25P02";
  fields.message = "the transaction had failed before and was rolled back instead of committed";
  fields.statement = kCommitTransaction.name;
  throw Error(std::move(fields));
}
}  // namespace

Transaction::Transaction(Transaction&& other) noexcept
    : connection_(std::exchange(other.connection_, nullptr)) {}

Transaction::~Transaction() {
  if (connection_ == nullptr) return;
  connection_->state().transaction_open = false;
  connection_->state().rollback_pending = true;
}

Task<void> Transaction::commit(Deadline deadline) {
  if (connection_ == nullptr) throw std::logic_error("commit of a transaction that is over");
  auto& state = connection_->state();
  const Claim claim(state);
  co_await state.begin(deadline);
  connection_ = nullptr;
  state.transaction_open = false;
  // A COMMIT that fails has ended the transaction too; whatever is still open after it is rolled back by the
  // next call.
  state.rollback_pending = false;
  const Params none;
  std::vector<Step> steps(1, Step{kCommitTransaction, &none});
  auto results = co_await finish_call(state, run_pipeline(state, std::move(steps), 0));
  if (results.front().tag() == "ROLLBACK") throw_not_committed();
}

Task<void> Transaction::rollback(Deadline deadline) {
  if (connection_ == nullptr) throw std::logic_error("rollback of a transaction that is over");
  auto* connection = std::exchange(connection_, nullptr);
  connection->state().transaction_open = false;
  co_await connection->end_transaction(deadline);
}

Task<Transaction> begin(Connection& connection, Deadline deadline) {
  auto& state = connection.state();
  if (state.transaction_open) throw std::logic_error("a transaction inside of a transaction");
  // This call itself rolls back a transaction that a dropped Transaction left open.
  co_await connection.query(kBeginReadCommitted, {}, deadline);
  state.transaction_open = true;
  co_return Transaction(connection);
}

}  // namespace todoke::pg

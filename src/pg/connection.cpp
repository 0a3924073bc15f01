#include "pg/connection.hpp"

#include <poll.h>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"
#include "pg/connection_state.hpp"

namespace todoke::pg {

namespace {

constexpr Statement kBegin{"begin", "BEGIN"};
constexpr Statement kCommit{"commit", "COMMIT"};
constexpr Statement kRollback{"rollback", "ROLLBACK"};
const Params kNone;

// An error on the way leaves the transaction failed but open; it is closed here, so that the caller finds an
// idle connection.
Task<void> roll_back(Connection::State& state) {
  state.until = std::max(state.until, std::chrono::steady_clock::now() + kDrainLimit);
  std::vector<Step> steps(1, Step{kRollback, &kNone});
  try {
    co_await run_pipeline(state, std::move(steps), std::nullopt);
  } catch (const DatabaseError& error) {
    log::debug("pg", "rollback failed, closing the connection", {{"error", error.what()}});
    state.close();
  }
}

Task<std::vector<Result>> run_transaction(Connection::State& state, const Batch& batch) {
  std::vector<Step> steps(1, Step{kBegin, &kNone});
  for (const auto& item : batch.items()) steps.push_back({item.statement, &item.params});
  steps.push_back({kCommit, &kNone});
  const auto commit_at = steps.size() - 1;

  std::vector<Result> results;
  std::exception_ptr failure;
  try {
    results = co_await run_pipeline(state, std::move(steps), commit_at);
  } catch (const Error& error) {
    // The caller counts its own statements: BEGIN is none of them.
    auto fields = error.fields();
    if (fields.index && *fields.index > 0) --*fields.index;
    failure = std::make_exception_ptr(Error(std::move(fields)));
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) {
    if (state.conn != nullptr && PQtransactionStatus(state.conn) == PQTRANS_INERROR)
      co_await roll_back(state);
    std::rethrow_exception(failure);
  }
  co_return std::vector<Result>(results.begin() + 1, results.end() - 1);
}

Task<std::vector<Result>> run_script(Connection::State& state, std::string sql) {
  if (PQsendQuery(state.conn, sql.c_str()) != 1) state.throw_bad(Io::lost, "running a script");
  auto io = co_await state.flush();
  std::optional<Error::Fields> failure;
  ResultPtr result;
  while (io == Io::ok) {
    io = co_await state.next_result(result);
    if (io != Io::ok || !result) break;
    const auto status = PQresultStatus(result.get());
    if (status == PGRES_FATAL_ERROR && !failure) failure = error_fields(result.get());
    if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH) {
      state.close();
      throw std::logic_error("COPY in a script; it has calls of its own");
    }
  }
  if (failure) {
    if (io == Io::lost) state.close();
    if (state.cancelled && failure->sqlstate == "57014") {
      throw DeadlineExceeded("the deadline passed; the script was cancelled");
    }
    throw Error(std::move(*failure));
  }
  if (io != Io::ok) state.throw_bad(io, "running a script");
  co_return std::vector<Result>();
}

}  // namespace

Connection::Connection(std::unique_ptr<State> state) : state_(std::move(state)) {}

Connection::~Connection() = default;

Task<Result> Connection::query(Statement statement, Params params, Deadline deadline) {
  const Claim claim(*state_);
  co_await state_->begin(deadline);
  std::vector<Step> steps(1, Step{statement, &params});
  auto results = co_await finish_call(*state_, run_pipeline(*state_, std::move(steps), std::nullopt));
  co_return std::move(results.front());
}

Task<std::vector<Result>> Connection::run(Batch batch, Deadline deadline) {
  const Claim claim(*state_);
  if (batch.mode() == Batch::Mode::transaction && in_transaction() && !state_->rollback_pending) {
    throw std::logic_error("a transaction batch inside of a transaction");
  }
  if (batch.size() == 0) co_return std::vector<Result>();
  co_await state_->begin(deadline);
  if (batch.mode() == Batch::Mode::transaction)
    co_return co_await finish_call(*state_, run_transaction(*state_, batch));
  std::vector<Step> steps;
  for (const auto& item : batch.items()) steps.push_back({item.statement, &item.params});
  co_return co_await finish_call(*state_, run_pipeline(*state_, std::move(steps), std::nullopt));
}

Task<void> Connection::execute_script(std::string sql, Deadline deadline) {
  const Claim claim(*state_);
  co_await state_->begin(deadline);
  co_await finish_call(*state_, run_script(*state_, std::move(sql)));
}

Task<std::vector<Notification>> Connection::notifications(Deadline deadline) {
  const Claim claim(*state_);
  co_await state_->begin(deadline);
  std::vector<Notification> got;
  bool waited = false;
  while (true) {
    while (PGnotify* note = PQnotifies(state_->conn)) {
      got.push_back({note->relname, note->extra});
      PQfreemem(note);
    }
    if (!got.empty() || waited) co_return got;
    const auto ready = co_await state_->socket.wait(Socket::kRead, deadline.at());
    waited = ready == 0;
    if (ready != 0 && PQconsumeInput(state_->conn) != 1) {
      state_->throw_bad(Io::lost, "waiting for notifications");
    }
  }
}

void Connection::interrupt() {
  if (state_->busy && !state_->cancelled) state_->until = std::chrono::steady_clock::now();
  state_->socket.interrupt();
}

Task<void> Connection::end_transaction(Deadline deadline) {
  if (!usable() || !in_transaction()) co_return;
  state_->rollback_pending = true;
  const Claim claim(*state_);
  co_await state_->begin(deadline);
  co_await state_->end();
}

bool Connection::usable() const {
  auto* conn = state_->conn;
  return conn != nullptr && !state_->busy && !state_->retired && !state_->farewell &&
         PQstatus(conn) == CONNECTION_OK && PQpipelineStatus(conn) == PQ_PIPELINE_OFF &&
         PQtransactionStatus(conn) != PQTRANS_ACTIVE && PQtransactionStatus(conn) != PQTRANS_UNKNOWN;
}

bool Connection::in_transaction() const {
  if (state_->conn == nullptr) return false;
  const auto status = PQtransactionStatus(state_->conn);
  return status == PQTRANS_INTRANS || status == PQTRANS_INERROR;
}

bool Connection::still_connected() {
  if (state_->conn == nullptr) return false;
  // Notifications and the server's farewell may stand in the stream; PQisBusy makes libpq read what they say.
  constexpr int kLooksMax = 8;
  for (int i = 0; i < kLooksMax; ++i) {
    pollfd look{PQsocket(state_->conn), POLLIN, 0};
    if (::poll(&look, 1, 0) == 0) return true;
    if (PQconsumeInput(state_->conn) != 1 || PQisBusy(state_->conn) == 1) return false;
    if (state_->farewell || PQstatus(state_->conn) != CONNECTION_OK) return false;
  }
  return true;
}

int Connection::backend_pid() const {
  return state_->conn == nullptr ? 0 : PQbackendPID(state_->conn);
}

int Connection::server_version() const {
  return state_->conn == nullptr ? 0 : PQserverVersion(state_->conn);
}

void Connection::detach() {
  state_->socket.detach();
}

void Connection::close() {
  state_->close();
}

}  // namespace todoke::pg

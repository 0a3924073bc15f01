#include "pg/copy.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/attempt.hpp"
#include "pg/connection_state.hpp"

namespace todoke::pg {

namespace {

// libpq gets this much at once, and copies it.
constexpr std::size_t kPutBytesMax = 256 * 1024;
constexpr std::size_t kReceiveBytes = 64 * 1024;

[[noreturn]] void throw_failure(Connection::State& state, Error::Fields fields, const Statement& statement) {
  if (state.cancelled) {
    throw DeadlineExceeded(fmt::format("the deadline passed; {} was cancelled", statement.name));
  }
  fields.statement = statement.name;
  throw Error(std::move(fields));
}

// Reads to the end of the command. The rows copied, or the server's error.
Task<std::int64_t> read_outcome(Connection::State& state, Statement statement) {
  std::optional<Error::Fields> failure;
  std::int64_t rows = 0;
  while (true) {
    ResultPtr result;
    const auto io = co_await state.next_result(result);
    if (io != Io::ok) state.throw_bad(io, fmt::format("running {}", statement.name));
    if (!result) break;
    if (PQresultStatus(result.get()) == PGRES_FATAL_ERROR) {
      if (!failure) failure = error_fields(result.get());
    } else if (PQresultStatus(result.get()) == PGRES_COMMAND_OK) {
      rows = Result(result).affected();
    }
  }
  if (failure) throw_failure(state, std::move(*failure), statement);
  co_return rows;
}

Task<bool> send_copy(Connection::State& state, Statement statement, ExecStatusType wanted) {
  const std::string sql(statement.sql);
  const auto doing = fmt::format("running {}", statement.name);
  if (PQsendQuery(state.conn, sql.c_str()) != 1) state.throw_bad(Io::lost, doing);
  auto io = co_await state.flush();
  ResultPtr result;
  if (io == Io::ok) io = co_await state.next_result(result);
  if (io != Io::ok) state.throw_bad(io, doing);
  if (result && PQresultStatus(result.get()) == wanted) co_return true;
  std::optional<Error::Fields> failure;
  if (result && PQresultStatus(result.get()) == PGRES_FATAL_ERROR) failure = error_fields(result.get());
  io = co_await state.drain();
  if (io != Io::ok) state.throw_bad(io, doing);
  if (failure) throw_failure(state, std::move(*failure), statement);
  throw std::logic_error(fmt::format("{} is not the COPY that it was run as", statement.name));
}

// Gives the pieces to `receive` and returns what it threw, if it did; the rest of the stream is read and
// forgotten then.
Task<std::exception_ptr> read_stream(Connection::State& state, Statement statement,
                                     std::function<Task<void>(std::string_view)>& receive) {
  std::exception_ptr refused;
  std::string piece;
  while (true) {
    char* row = nullptr;
    constexpr int kAsync = 1;
    const auto length = PQgetCopyData(state.conn, &row, kAsync);
    const std::unique_ptr<char, decltype(&PQfreemem)> owner(row, PQfreemem);
    if (length > 0 && !refused) piece.append(row, static_cast<std::size_t>(length));
    const bool over = length == -1 || length == -2;
    if (!refused && (piece.size() >= kReceiveBytes || (over && !piece.empty()))) {
      if (const auto received = co_await attempt(receive(piece)); !received) refused = received.error();
      piece.clear();
      if (refused && !over && !state.cancelled) state.start_cancel();
    }
    // -2 is an error; what it was stands in the result that follows.
    if (over) co_return refused;
    if (length == 0) {
      const auto io = co_await state.wait(Socket::kRead);
      if (io != Io::ok) state.throw_bad(io, fmt::format("running {}", statement.name));
    }
  }
}

Task<std::int64_t> run_copy_out(Connection::State& state, Statement statement,
                                std::function<Task<void>(std::string_view)>& receive) {
  co_await send_copy(state, statement, PGRES_COPY_OUT);
  const auto refused = co_await read_stream(state, statement, receive);
  const auto rows = co_await attempt(read_outcome(state, statement));
  if (refused) std::rethrow_exception(refused);
  if (!rows) std::rethrow_exception(rows.error());
  co_return *rows;
}

}  // namespace

Task<CopyIn> CopyIn::start(Connection& connection, Statement statement, Deadline deadline) {
  auto& state = connection.state();
  const Claim claim(state);
  co_await state.begin(deadline);
  co_await finish_call(state, send_copy(state, statement, PGRES_COPY_IN));
  co_return CopyIn(connection, statement);
}

CopyIn::CopyIn(CopyIn&& other) noexcept
    : connection_(std::exchange(other.connection_, nullptr)), statement_(other.statement_) {}

Task<void> CopyIn::send_piece(std::string_view piece) {
  auto& state = connection_->state();
  const auto doing = fmt::format("running {}", statement_.name);
  while (!piece.empty() && !state.cancelled) {
    const auto part = piece.substr(0, kPutBytesMax);
    const auto taken = PQputCopyData(state.conn, part.data(), static_cast<int>(part.size()));
    if (taken < 0) state.throw_bad(Io::lost, doing);
    if (taken > 0) piece.remove_prefix(part.size());
    const auto io = co_await state.flush();
    if (io != Io::ok) state.throw_bad(io, doing);
  }
}

Task<void> CopyIn::write(std::string_view piece) {
  if (connection_ == nullptr) throw std::logic_error("write to a copy that is over");
  auto& state = connection_->state();
  const Claim claim(state);
  if (state.conn == nullptr) throw ConnectionLost("the connection is closed");
  if (!state.cancelled && std::chrono::steady_clock::now() >= state.until) state.start_cancel();
  co_await send_piece(piece);
  if (state.cancelled) co_await finish_call(state, complete("the deadline passed"));
}

Task<std::int64_t> CopyIn::finish() {
  if (connection_ == nullptr) throw std::logic_error("finish of a copy that is over");
  auto& state = connection_->state();
  const Claim claim(state);
  if (state.conn == nullptr) throw ConnectionLost("the connection is closed");
  if (std::chrono::steady_clock::now() >= state.until) state.start_cancel();
  const char* reason = state.cancelled ? "the deadline passed" : nullptr;
  co_return co_await finish_call(state, complete(reason));
}

// With a reason the server throws the rows away: it reads a cancel only between rows, but this at once.
Task<std::int64_t> CopyIn::complete(const char* abort_reason) {
  auto& state = std::exchange(connection_, nullptr)->state();
  const auto doing = fmt::format("running {}", statement_.name);
  int taken = 0;
  while ((taken = PQputCopyEnd(state.conn, abort_reason)) == 0) {
    const auto io = co_await state.wait(Socket::kRead | Socket::kWrite);
    if (io != Io::ok) state.throw_bad(io, doing);
  }
  if (taken < 0) state.throw_bad(Io::lost, doing);
  const auto io = co_await state.flush();
  if (io != Io::ok) state.throw_bad(io, doing);
  co_return co_await read_outcome(state, statement_);
}

Task<std::int64_t> copy_out(Connection& connection, Statement statement,
                            std::function<Task<void>(std::string_view)> receive, Deadline deadline) {
  auto& state = connection.state();
  const Claim claim(state);
  co_await state.begin(deadline);
  co_return co_await finish_call(state, run_copy_out(state, statement, receive));
}

}  // namespace todoke::pg

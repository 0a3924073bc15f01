#include "pg/connection_state.hpp"

#include <array>
#include <atomic>
#include <stdexcept>
#include <utility>

#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>

#include "base/log.hpp"

namespace todoke::pg {

namespace {
struct BlockingCall {
  explicit BlockingCall(const Executor& executor) : done(executor) {}
  Signal done;
  std::exception_ptr failure;
};

// Starts `work` on the blocking pool. Its end shows in the BlockingCall, on the executor.
std::shared_ptr<BlockingCall> start_blocking(const Executor& executor, std::function<void()> work) {
  auto call = std::make_shared<BlockingCall>(executor);
  spawn(executor, run_blocking(std::move(work)), [call](std::exception_ptr failure) {
    call->failure = std::move(failure);
    call->done.set();
  });
  return call;
}

std::string field_of(const PGresult* result, int code) {
  const char* text = PQresultErrorField(result, code);
  return text == nullptr ? std::string() : std::string(text);
}
}  // namespace

struct Connection::State::Cancel {
  explicit Cancel(PGcancel* h) : handle(h) {}
  ~Cancel() { PQfreeCancel(handle); }
  Cancel(const Cancel&) = delete;
  Cancel& operator=(const Cancel&) = delete;

  void send() const {
    std::array<char, 256> message{};
    if (PQcancel(handle, message.data(), static_cast<int>(message.size())) != 1) {
      log::debug("pg", "cancel failed", {{"error", message.data()}});
    }
  }

  PGcancel* handle;
  std::shared_ptr<BlockingCall> call;
};

Task<bool> run_blocking_until(std::function<void()> work, SteadyTime until) {
  const auto executor = co_await asio::this_coro::executor;
  // Work whose caller gave up before its turn is not begun: a resolver that hangs must not leave a queue.
  const auto given_up = std::make_shared<std::atomic<bool>>(false);
  std::function<void()> unless_given_up = [given_up, work = std::move(work)] {
    if (!*given_up) work();
  };
  auto call = start_blocking(executor, std::move(unless_given_up));
  const bool ended = co_await call->done.wait_for(until - std::chrono::steady_clock::now());
  if (!ended) *given_up = true;
  if (ended && call->failure) std::rethrow_exception(call->failure);
  co_return ended;
}

Connection::State::~State() {
  close();
}

void Connection::State::close() {
  socket.detach();
  if (conn != nullptr) PQfinish(std::exchange(conn, nullptr));
  prepared.clear();
}

Claim::Claim(Connection::State& state) : state_(state) {
  if (state_.busy) throw std::logic_error("a connection is used by two coroutines at once");
  state_.busy = true;
}

Claim::~Claim() {
  state_.busy = false;
}

Task<void> Connection::State::begin(Deadline limit) {
  if (conn == nullptr || PQstatus(conn) == CONNECTION_BAD) throw ConnectionLost("the connection is closed");
  if (limit.passed()) throw DeadlineExceeded("the deadline passed before the statement was sent");
  executor = co_await asio::this_coro::executor;
  socket.attach(*executor, PQsocket(conn));
  arm(limit);
  if (!std::exchange(rollback_pending, false)) co_return;
  const auto status = PQtransactionStatus(conn);
  if (status != PQTRANS_INTRANS && status != PQTRANS_INERROR) co_return;
  const Params none;
  std::vector<Step> steps(1, Step{{"rollback", "ROLLBACK"}, &none});
  co_await finish_call(*this, run_pipeline(*this, std::move(steps), std::nullopt));
  arm(limit);
}

void Connection::State::arm(Deadline limit) {
  until = limit.at();
  began = std::chrono::steady_clock::now();
  cancelled = false;
  fatal.clear();
  server_ended_it = false;
}

Task<void> Connection::State::end() {
  if (query_seconds != nullptr) {
    query_seconds->observe(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  }
  if (!cancel) co_return;
  const auto job = std::exchange(cancel, nullptr);
  const bool over = co_await job->call->done.wait_for(until - std::chrono::steady_clock::now());
  if (!over) close();
}

void Connection::State::start_cancel() {
  cancelled = true;
  until = std::chrono::steady_clock::now() + kDrainLimit;
  PGcancel* handle = PQgetCancel(conn);
  if (handle == nullptr) return;
  cancel = std::make_shared<Cancel>(handle);
  // Apart from the exchange, which goes on reading: the server's answer may come before the cancel's
  // connection is closed. The handle is kept by the work alone, which may outlive this connection.
  cancel->call = start_blocking(*executor, [job = cancel] { job->send(); });
}

Task<Io> Connection::State::wait(unsigned interest) {
  while (true) {
    const auto ready = co_await socket.wait(interest, until);
    if ((ready & Socket::kRead) != 0 && PQconsumeInput(conn) != 1) co_return Io::lost;
    if (ready != 0) co_return Io::ok;
    if (std::chrono::steady_clock::now() < until) continue;
    if (cancelled) {
      close();
      co_return Io::expired;
    }
    start_cancel();
  }
}

Task<Io> Connection::State::flush() {
  while (true) {
    const auto left = PQflush(conn);
    if (left == 0) co_return Io::ok;
    if (left < 0) co_return Io::lost;
    const auto io = co_await wait(Socket::kRead | Socket::kWrite);
    if (io != Io::ok) co_return io;
  }
}

Task<Io> Connection::State::next_result(ResultPtr& result) {
  auto io = Io::ok;
  while (io == Io::ok && PQisBusy(conn) == 1) io = co_await wait(Socket::kRead);
  if (io == Io::expired) co_return io;
  // On a broken connection this gives what was read before it broke (the server's last words), and never
  // blocks.
  result = ResultPtr(PQgetResult(conn), PQclear);
  if (!result) co_return PQstatus(conn) == CONNECTION_BAD ? Io::lost : Io::ok;
  if (PQresultStatus(result.get()) == PGRES_FATAL_ERROR && is_fatal(result.get())) {
    fatal = error_fields(result.get()).message;
    server_ended_it = PQresultErrorField(result.get(), PG_DIAG_SEVERITY_NONLOCALIZED) != nullptr;
    co_return Io::lost;
  }
  co_return Io::ok;
}

Task<Io> Connection::State::drain() {
  ResultPtr result;
  do {
    const auto io = co_await next_result(result);
    if (io != Io::ok) co_return io;
  } while (result);
  co_return Io::ok;
}

std::string Connection::State::last_message() const {
  std::string text = !fatal.empty() ? fatal : conn == nullptr ? "closed" : PQerrorMessage(conn);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  if (!secret.empty()) {
    for (auto at = text.find(secret); at != std::string::npos; at = text.find(secret, at)) {
      text.replace(at, secret.size(), "********");
      at += 8;
    }
  }
  for (auto& c : text) {
    if (c == '\n') c = ' ';
  }
  return text.empty() ? "the server hung up" : text;
}

void Connection::State::throw_bad(Io io, std::string_view doing) {
  if (io == Io::expired) {
    throw DeadlineExceeded(
        fmt::format("the deadline passed while {}, and the server did not confirm the cancel", doing));
  }
  const auto message = last_message();
  close();
  throw ConnectionLost(fmt::format("connection lost while {}: {}", doing, message));
}

Error::Fields error_fields(const PGresult* result) {
  Error::Fields fields;
  fields.sqlstate = field_of(result, PG_DIAG_SQLSTATE);
  fields.message = field_of(result, PG_DIAG_MESSAGE_PRIMARY);
  fields.detail = field_of(result, PG_DIAG_MESSAGE_DETAIL);
  fields.hint = field_of(result, PG_DIAG_MESSAGE_HINT);
  fields.schema = field_of(result, PG_DIAG_SCHEMA_NAME);
  fields.table = field_of(result, PG_DIAG_TABLE_NAME);
  fields.column = field_of(result, PG_DIAG_COLUMN_NAME);
  fields.constraint = field_of(result, PG_DIAG_CONSTRAINT_NAME);
  if (fields.message.empty()) fields.message = PQresultErrorMessage(result);
  return fields;
}

bool is_fatal(const PGresult* result) {
  const char* severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
  // Without a severity the message is libpq's own: the connection broke.
  if (severity == nullptr) return PQresultErrorField(result, PG_DIAG_SQLSTATE) == nullptr;
  return std::string_view(severity) == "FATAL" || std::string_view(severity) == "PANIC";
}

}  // namespace todoke::pg

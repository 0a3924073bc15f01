// The inside of a Connection: the libpq handle and the steps that every kind of call is made of. For this
// room only.
//
// A call is an exchange: begin() -> send -> flush() -> next_result() … -> end(). When the deadline passes
// during a wait, the exchange goes on under a short second deadline while the server is asked to cancel; the
// caller keeps reading answers as before and sees at the end whether the statement was cancelled or made it
// after all.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <libpq-fe.h>

#include "base/hash_table.hpp"
#include "pg/connection.hpp"
#include "pg/error.hpp"
#include "pg/socket.hpp"

namespace todoke::pg {

// How long the server has to answer after a cancel before the connection is given up. The cancel itself takes
// a new connection and one round trip.
inline constexpr std::chrono::seconds kDrainLimit(2);

using ResultPtr = std::shared_ptr<PGresult>;

// A call that is under way on a connection ends as one of these.
enum class Io {
  ok,
  lost,     // the connection is broken
  expired,  // neither an answer nor the end of the statement came in time; the connection was closed
};

struct Connection::State {
  State() = default;
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // Under a Claim: rolls back what a dropped Transaction left, and arms the deadline.
  Task<void> begin(Deadline limit);
  void arm(Deadline limit);
  // Waits for the cancel to be over, if there was one, so that it can't hit a later statement. Must be the
  // last step.
  Task<void> end();

  // One wait for the socket, with the deadline's consequences.
  Task<Io> wait(unsigned interest);
  // Sends what libpq has buffered, reading meanwhile: the server may stop reading until its own answers are
  // read.
  Task<Io> flush();
  // The next result; null is libpq's end of one command's results. Answers that came before the connection
  // broke are given.
  Task<Io> next_result(ResultPtr& result);
  // Reads and forgets what is left of a simple-protocol command.
  Task<Io> drain();
  void start_cancel();

  // The exceptions for the two bad ends. `doing` completes "… while doing".
  [[noreturn]] void throw_bad(Io io, std::string_view doing);
  [[nodiscard]] std::string last_message() const;
  void close();

  PGconn* conn = nullptr;
  Socket socket;
  std::string secret;  // the password, to be kept out of messages
  metrics::Histogram* query_seconds = nullptr;

  // The server's names of prepared statements, by their text and the types of their parameters.
  HashMap<std::string, std::string> prepared;
  std::size_t prepared_count = 0;
  // A prepared statement has gone stale: the pool closes the connection.
  bool retired = false;
  // The server said that it ends the connection; it may hang up a little later.
  bool farewell = false;

  bool transaction_open = false;  // a Transaction object owns the transaction
  bool rollback_pending = false;  // a Transaction was dropped

  // Of the exchange under way.
  bool busy = false;
  std::optional<Executor> executor;
  SteadyTime until;
  SteadyTime began;
  bool cancelled = false;
  std::string fatal;  // the last words on a connection that ended: the server's, or libpq's about it
  bool server_ended_it = false;  // they are the server's own

  struct Cancel;
  std::shared_ptr<Cancel> cancel;
};

// Keeps the connection for one call. Throws std::logic_error when another call is under way.
class Claim {
 public:
  explicit Claim(Connection::State& state);
  ~Claim();
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

 private:
  Connection::State& state_;
};

// One statement of a pipeline.
struct Step {
  Statement statement;
  const Params* params;
};

// Runs `steps` in one flush. `commit_at` is the index of the COMMIT, where there is one. Between begin() and
// end().
Task<std::vector<Result>> run_pipeline(Connection::State& state, std::vector<Step> steps,
                                       std::optional<std::size_t> commit_at);

// Runs a call to its end, lets the cancel, if there was one, settle, and only then tells the outcome.
template <class T>
Task<T> finish_call(Connection::State& state, Task<T> call) {
  std::optional<T> value;
  std::exception_ptr failure;
  try {
    value = co_await std::move(call);
  } catch (...) {
    failure = std::current_exception();
  }
  co_await state.end();
  if (failure) std::rethrow_exception(failure);
  co_return std::move(*value);
}

// The server's error in a result, and whether it ended the connection with it (FATAL, PANIC).
Error::Fields error_fields(const PGresult* result);
bool is_fatal(const PGresult* result);

// Runs `work` on the blocking pool. False: the time was up; `work` goes on and must own all that it touches.
Task<bool> run_blocking_until(std::function<void()> work, SteadyTime until);

}  // namespace todoke::pg

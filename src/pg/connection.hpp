// One connection to Postgres, on libpq's asynchronous interface. Used by one coroutine at a time, from any
// executor that runs one handler at a time; two at once is a programming error and throws std::logic_error.
//
// Every call has a deadline. When it passes, the statement is cancelled on the server and its end is waited
// for (2 s at most), so that the connection can be used again; where that fails it is closed. An answer that
// comes during that wait is returned. Statements are prepared once for each connection; preparing travels
// together with the first execution (one round trip). Values travel in binary both ways. A result is held in
// memory whole.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/async.hpp"
#include "base/clock.hpp"
#include "base/metrics.hpp"
#include "pg/params.hpp"
#include "pg/result.hpp"
#include "pg/statement.hpp"

namespace todoke::pg {

// How long one try to connect may take, name lookup and login included. A server that is there answers in
// milliseconds, over the Internet too; after five seconds another try serves better than waiting.
inline constexpr std::chrono::seconds kConnectMax(5);

struct ConnectOptions {
  // A connection string or URI, as libpq takes it; several hosts and target_session_attrs work.
  std::string url;
  // Further settings of libpq; they win over the same ones in the url.
  std::vector<std::pair<std::string, std::string>> settings;
  std::string application_name = "todoke";
  // Observes how long each call took; may be null.
  metrics::Histogram* query_seconds = nullptr;
};

struct Notification {
  std::string channel;
  std::string payload;
};

// Statements that are sent in one flush and ended by one sync: one round trip for all.
class Batch {
 public:
  enum class Mode {
    transaction,  // wrapped in BEGIN and COMMIT: all or nothing, and a lost answer is a CommitOutcomeUnknown
    plain,        // as part of a transaction that is open, or for reading
  };
  explicit Batch(Mode mode = Mode::transaction) : mode_(mode) {}

  Batch& add(Statement statement, Params params = {}) {
    items_.push_back({statement, std::move(params)});
    return *this;
  }
  struct Item {
    Statement statement;
    Params params;
  };
  [[nodiscard]] const std::vector<Item>& items() const { return items_; }
  [[nodiscard]] std::size_t size() const { return items_.size(); }
  [[nodiscard]] Mode mode() const { return mode_; }

 private:
  Mode mode_;
  std::vector<Item> items_;
};

class Connection {
 public:
  // Throws UserError for a connection string that can't be understood, ConnectionLost when no server takes us
  // and DeadlineExceeded. Name lookups and the TLS and password arithmetic run on the blocking pool, not on
  // the caller's loop.
  static Task<std::unique_ptr<Connection>> connect(ConnectOptions options, Deadline deadline);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Task<Result> query(Statement statement, Params params, Deadline deadline);
  // One result for each statement. The first failure is thrown as an Error with the statement's index;
  // nothing of a transaction batch has happened then.
  Task<std::vector<Result>> run(Batch batch, Deadline deadline);
  // Any number of statements over the simple protocol, without parameters and results: migrations, LISTEN.
  Task<void> execute_script(std::string sql, Deadline deadline);

  // Notifications that have come so far; waits for the first one. Empty: the time was up or interrupt() was
  // called.
  Task<std::vector<Notification>> notifications(Deadline deadline);
  // Ends the call under way: a statement is cancelled as if its deadline had passed. On its executor.
  void interrupt();

  // Rolls back a transaction that was left open. Does nothing on an idle connection.
  Task<void> end_transaction(Deadline deadline);

  // Open, and nothing under way that was left half done. False: only good for closing.
  [[nodiscard]] bool usable() const;
  [[nodiscard]] bool in_transaction() const;
  // Looks at the socket without waiting: false when the server has hung up meanwhile.
  [[nodiscard]] bool still_connected();
  [[nodiscard]] int backend_pid() const;
  [[nodiscard]] int server_version() const;  // 150004

  // Leaves the executor that it was last used on. To be called before that executor ends, and before use on
  // another thread.
  void detach();
  void close();

  // For transaction.cpp.
  struct State;
  [[nodiscard]] State& state() { return *state_; }

 private:
  explicit Connection(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace todoke::pg

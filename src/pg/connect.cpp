// Making a connection: libpq's PQconnectPoll state machine, driven by readiness.
#include <stdexcept>
#include <utility>

#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "pg/connection_state.hpp"

namespace todoke::pg {

namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

// Defaults that the connection string may override: a peer that vanished is noticed after about a minute when
// idle, and after 15 s when it owes us an acknowledgement (this also bounds the connection that a cancel
// makes).
const Settings kDefaults{{"keepalives", "1"},
                         {"keepalives_idle", "30"},
                         {"keepalives_interval", "10"},
                         {"keepalives_count", "3"},
                         {"tcp_user_timeout", "15000"}};

// libpq's own messages about a connection string quote it, password and all; ours don't.
[[noreturn]] void throw_malformed(std::string_view why) {
  throw UserError(fmt::format(
      "database.url can't be understood: {} (the text is not shown, it may hold a password). "
      "Expected: postgres://user:password@host:5432/name, with special characters in the password "
      "percent-encoded",
      why));
}

// Checks the string and returns the password in it.
std::string check_url(const std::string& url) {
  std::string password;
  char* message = nullptr;
  PQconninfoOption* options = PQconninfoParse(url.c_str(), &message);
  PQfreemem(message);
  if (options == nullptr) throw_malformed("not a connection string or URI");
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> owner(options, PQconninfoFree);
  for (const auto* option = options; option->keyword != nullptr; ++option) {
    if (option->val == nullptr) continue;
    const std::string_view keyword = option->keyword;
    if (keyword == "password") password = option->val;
    // A password with a bare @ makes the rest of it part of the host, and the host is part of messages.
    if (keyword == "host" && std::string_view(option->val).find('@') != std::string_view::npos) {
      throw_malformed("the host holds an @");
    }
    if (keyword == "port" &&
        std::string_view(option->val).find_first_not_of("0123456789,") != std::string_view::npos) {
      throw_malformed("the port is no number");
    }
  }
  return password;
}

// The state of one attempt. Shared with the blocking pool, which may still be in a name lookup when we have
// given up.
struct Attempt {
  explicit Attempt(Settings all) : settings(std::move(all)) {}
  ~Attempt() {
    if (conn != nullptr) PQfinish(conn);
  }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  void start() {
    std::vector<const char*> keywords;
    std::vector<const char*> values;
    for (const auto& [keyword, value] : settings) {
      keywords.push_back(keyword.c_str());
      values.push_back(value.c_str());
    }
    keywords.push_back(nullptr);
    values.push_back(nullptr);
    constexpr int kExpandDbname = 1;
    conn = PQconnectStartParams(keywords.data(), values.data(), kExpandDbname);
    if (conn == nullptr) throw std::bad_alloc();
    if (PQstatus(conn) == CONNECTION_BAD) status = PGRES_POLLING_FAILED;
  }

  Settings settings;
  PGconn* conn = nullptr;
  PostgresPollingStatusType status = PGRES_POLLING_WRITING;
};

Settings settings_of(const ConnectOptions& options) {
  Settings all = kDefaults;
  all.emplace_back("application_name", options.application_name);
  all.emplace_back("dbname", options.url);
  all.insert(all.end(), options.settings.begin(), options.settings.end());
  all.emplace_back("client_encoding", "UTF8");
  return all;
}

void log_notice(void* state, const PGresult* notice) {
  const auto fields = error_fields(notice);
  // A server that hangs up on an idle connection says so in a notice.
  if (is_fatal(notice)) static_cast<Connection::State*>(state)->farewell = true;
  log::debug("pg", "notice", {{"sqlstate", fields.sqlstate}, {"message", fields.message}});
}

[[noreturn]] void throw_late() {
  throw DeadlineExceeded("the deadline passed while connecting to the database");
}

}  // namespace

Task<std::unique_ptr<Connection>> Connection::connect(ConnectOptions options, Deadline deadline) {
  auto state = std::make_unique<State>();
  state->secret = check_url(options.url);
  state->query_seconds = options.query_seconds;
  auto attempt = std::make_shared<Attempt>(settings_of(options));
  const auto executor = co_await asio::this_coro::executor;

  std::function<void()> step = [attempt] { attempt->start(); };
  bool ended = co_await run_blocking_until(step, deadline.at());
  if (!ended) throw_late();
  step = [attempt] { attempt->status = PQconnectPoll(attempt->conn); };
  while (attempt->status != PGRES_POLLING_OK && attempt->status != PGRES_POLLING_FAILED) {
    // The next poll may close this socket and open another under the same number, so it is attached for one
    // wait only.
    state->socket.attach(executor, PQsocket(attempt->conn));
    const auto interest = attempt->status == PGRES_POLLING_READING ? Socket::kRead : Socket::kWrite;
    const auto ready = co_await state->socket.wait(interest, deadline.at());
    state->socket.detach();
    if (ready == 0) throw_late();
    // Not on the caller's loop: with several hosts each poll may look up a name, and the password's hash
    // takes milliseconds.
    ended = co_await run_blocking_until(step, deadline.at());
    if (!ended) throw_late();
  }
  state->conn = std::exchange(attempt->conn, nullptr);
  if (attempt->status == PGRES_POLLING_FAILED) {
    throw ConnectionLost(fmt::format("can't connect to the database: {}", state->last_message()));
  }
  if (PQsetnonblocking(state->conn, 1) != 0) throw ConnectionLost("the database hung up while connecting");
  PQsetNoticeReceiver(state->conn, log_notice, state.get());
  co_return std::unique_ptr<Connection>(new Connection(std::move(state)));
}

}  // namespace todoke::pg

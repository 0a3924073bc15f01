#include "app/connection_in_use.hpp"

#include <cerrno>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <sys/socket.h>
#include <sys/un.h>
#include <utility>

#include <fmt/format.h>
#include <libpq-fe.h>

#include "app/command.hpp"
#include "app/data_folder.hpp"
#include "app/database_service.hpp"
#include "app/keys.hpp"
#include "app/statements_sql.hpp"
#include "base/attempt.hpp"
#include "base/fd.hpp"
#include "embedded/folder.hpp"
#include "embedded/postgres.hpp"
#include "pg/config.hpp"
#include "pg/migrations.hpp"

namespace todoke::app {
namespace {

constexpr std::chrono::seconds kStatusMax(10);
constexpr int kPingSeconds = 3;

using ConnectionOptions = std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)>;

void read_options(const ConnectionOptions& options, std::map<std::string, std::string>& values) {
  for (const auto* option = options.get(); option != nullptr && option->keyword != nullptr; ++option) {
    if (option->val != nullptr) values.emplace(option->keyword, option->val);
  }
}

std::string one_name_of_loopback(const std::string& host) {
  return host == "127.0.0.1" || host == "::1" ? "localhost" : host;
}

// Whether a process has the embedded database's socket. One that hangs has it, too.
bool is_listening(const embedded::Layout& layout) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const auto path = fmt::format("{}/.s.PGSQL.{}", layout.sockets, embedded::kPort);
  if (path.size() >= sizeof(address.sun_path)) return false;
  path.copy(static_cast<char*>(address.sun_path), path.size());
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  // EAGAIN: the queue of those that wait to be let in is full.
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 ||
         errno == EAGAIN;
}

Task<void> check_and_work(pg::Connection& connection, std::function<Task<void>(pg::Connection&)> work) {
  check_server_version(connection);
  const auto status =
      co_await pg::migration_status(connection, pg::embedded_migrations(), Deadline::after(kStatusMax));
  if (!status.problem.empty()) throw UserError(status.problem);
  if (!status.pending.empty()) {
    throw UserError(
        fmt::format("the database lacks {} of {} migrations: `todoke migrate` or a start applies them",
                    status.pending.size(), status.pending.size() + status.applied.size()));
  }
  pg::Params actor(operator_name());
  co_await connection.query(sql::kActAsPerson, std::move(actor), Deadline::after(kStatusMax));
  co_await work(connection);
}

Task<void> connect_and_work(DatabaseInUse database, std::function<Task<void>(pg::Connection&)> work) {
  pg::ConnectOptions options;
  options.url = database.url;
  const auto connection = co_await pg::Connection::connect(options, Deadline::after(pg::kConnectMax));
  co_await work(*connection);
  connection->detach();
}

Task<void> start_and_work(embedded::Postgres& server, DatabaseInUse database,
                          std::function<Task<void>(pg::Connection&)> work) {
  co_await server.start();
  const auto done = co_await attempt(connect_and_work(std::move(database), std::move(work)));
  server.stop();
  co_await server.run();
  if (!done) std::rethrow_exception(done.error());
}

}  // namespace

DatabaseInUse database_in_use(const Config& config) {
  const auto& url = config.get(pg::kDatabaseUrl);
  if (!url.empty())
    return {false, url, config.get(pg::kDatabaseOwnerUrl),
            fmt::format("configured (database.url from {})", config.setting("database.url").source)};
  const auto folder = data_folder(config);
  const auto layout = embedded::layout_of(folder);
  return {true, embedded::url_of(layout, embedded::kNodeRole), embedded::url_of(layout, embedded::kOwnerRole),
          fmt::format("embedded Postgres in {}", layout.cluster)};
}

std::string database_place(const std::string& url) {
  const ConnectionOptions given(PQconninfoParse(url.c_str(), nullptr), &PQconninfoFree);
  if (!given) return {};
  std::map<std::string, std::string> values;
  read_options(given, values);
  // PGHOST and the others stand for what the string leaves out.
  read_options(ConnectionOptions(PQconndefaults(), &PQconninfoFree), values);
  const auto& host = values["hostaddr"].empty() ? values["host"] : values["hostaddr"];
  const auto& database = values["dbname"].empty() ? values["user"] : values["dbname"];
  return fmt::format("host={} port={} dbname={}", one_name_of_loopback(host), values["port"], database);
}

bool embedded_is_running(const Config& config) {
  // libpq counts in seconds, and waits for ever by default.
  const auto database = database_in_use(config);
  const auto ping = PQping(fmt::format("{} connect_timeout={}", database.url, kPingSeconds).c_str());
  if (ping == PQPING_OK || ping == PQPING_REJECT) return true;
  if (is_listening(embedded::layout_of(data_folder(config)))) {
    throw UserError(
        fmt::format("{} runs and gives no answer within {} s: it hangs, or the machine is overloaded",
                    database.shown, kPingSeconds));
  }
  return false;
}

void with_database(const Config& config, std::function<Task<void>(pg::Connection&)> work, As as) {
  configure_logs(config);
  Runtime runtime;
  auto database = database_in_use(config);
  if (as == As::owner && !database.owner_url.empty()) database.url = database.owner_url;
  if (!database.embedded || embedded_is_running(config)) {
    runtime.run(connect_and_work(database, std::move(work)));
    return;
  }
  embedded::Postgres server(runtime.main(), embedded::options_from(config, data_folder(config)));
  runtime.run(start_and_work(server, database, std::move(work)));
}

void refuse_stopped(const Config& config, const DatabaseInUse& database) {
  if (!database.embedded || embedded_is_running(config)) return;
  throw UserError(
      fmt::format("no node runs on {}; start one with `todoke up`, or set DATABASE_URL or TODOKE_DATA_DIR",
                  data_folder(config).string()));
}

void with_running_database(const Config& config, std::function<Task<void>(pg::Connection&)> work, As as) {
  refuse_stopped(config, database_in_use(config));
  with_database(
      config,
      [work = std::move(work)](pg::Connection& connection) { return check_and_work(connection, work); }, as);
}

void with_made_database(const Config& config, std::function<Task<void>(pg::Connection&)> work) {
  const auto cluster = embedded::layout_of(data_folder(config)).cluster;
  if (database_in_use(config).embedded && !std::filesystem::exists(cluster)) {
    throw UserError(
        fmt::format("there is no database in {}: `todoke migrate` makes one", data_folder(config).string()));
  }
  with_database(config, [work = std::move(work)](pg::Connection& connection) {
    return check_and_work(connection, work);
  });
}

}  // namespace todoke::app

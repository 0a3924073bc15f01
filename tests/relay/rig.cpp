#include "rig.hpp"

#include <sstream>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>
#include <libpq-fe.h>

#include "http/rig.hpp"
#include "net/config.hpp"
#include "net/server.hpp"
#include "pg/listener.hpp"
#include "pg/pool.hpp"
#include "relay/config.hpp"
#include "relay/relay.hpp"

namespace todoke::test {
namespace {

using net::test::kPatience;
using net::test::Loop;

// Between two looks at a condition: leaves the processor to the relay.
constexpr std::chrono::milliseconds kPollPause(2);

const Schema& schema() {
  static const Schema kSchema = [] {
    Schema all;
    all.add(net::config_keys());
    all.add(relay::config_keys());
    return all;
  }();
  return kSchema;
}

Config config_of(const Flags& flags) {
  Config config(schema());
  config.set_flag("limits.rates", "off");
  // A client of the test's own thread does not answer a close frame while the test does something else.
  config.set_flag("server.drain_timeout", "100ms");
  for (const auto& [key, value] : flags) config.set_flag(key, value);
  return config;
}

pg::ConnectOptions connect_options(const TestDatabase& database) {
  pg::ConnectOptions options;
  options.url = database.url();
  return options;
}

}  // namespace

struct RelayRig::Parts {
  explicit Parts(const RigOptions& options)
      : config(config_of(options.flags)),
        pool({.connect = connect_options(*options.database)}, clock, registry),
        listener(std::make_shared<pg::Listener>(
            main.executor(), pg::ListenerOptions{.connect = connect_options(*options.database)}, registry)),
        supervisor(main.executor(), clock, board, registry) {
    net::ServerConfig server_config;
    server_config.listen = "127.0.0.1:0";
    server_config.limits = net::limits_from(config);
    const auto router = std::make_shared<net::Router>();
    server_config.router = router;
    const auto worker = options.one_loop ? main.executor() : connections.executor();
    server = std::make_shared<net::HttpServer>(std::move(server_config), main.executor(), std::vector{worker},
                                               registry);
    supervisor.add(server, true);
    supervisor.add(listener);
    relay::RelayParts parts{
        config, clock,    main.executor(), pool,     *listener, connect_options(*options.database),
        log,    pressure, nullptr,         registry, *router,   "0.0.0-test"};
    for (auto& service : relay::build_relay(std::move(parts))) supervisor.add(std::move(service));
    main.run(supervisor.start());
  }

  ~Parts() {
    main.run(supervisor.stop());
    pool.close();
  }

  Config config;
  ShiftedClock clock;
  metrics::Registry registry;
  HealthBoard board;
  outbox::LogSignal log;
  outbox::Pressure pressure;
  Loop main;
  Loop connections;
  pg::Pool pool;
  std::shared_ptr<pg::Listener> listener;
  std::shared_ptr<net::HttpServer> server;
  Supervisor supervisor;
};

SqlSession::SqlSession(const TestDatabase& database)
    : connection_(PQconnectdb(database.url().c_str()),
                  [](void* connection) { PQfinish(static_cast<PGconn*>(connection)); }) {}

Rows SqlSession::run(const std::string& statement) {
  auto* connection = static_cast<PGconn*>(connection_.get());
  const std::unique_ptr<PGresult, void (*)(PGresult*)> result(PQexec(connection, statement.c_str()), PQclear);
  const auto status = PQresultStatus(result.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
    throw std::runtime_error(PQerrorMessage(connection));
  }
  Rows rows;
  for (int row = 0; row < PQntuples(result.get()); ++row) {
    std::string text;
    for (int column = 0; column < PQnfields(result.get()); ++column) {
      if (column > 0) text += '|';
      text += PQgetvalue(result.get(), row, column);
    }
    rows.push_back(std::move(text));
  }
  return rows;
}

RelayRig::RelayRig(RigOptions options) : options_(std::move(options)) {
  if (!options_.database) options_.database = std::make_shared<TestDatabase>();
  start();
}

RelayRig::~RelayRig() = default;

void RelayRig::start() {
  parts_ = std::make_unique<Parts>(options_);
}

void RelayRig::stop() {
  parts_.reset();
}

std::uint16_t RelayRig::port() const {
  return parts_->server->port();
}

std::string RelayRig::url(std::string_view path) const {
  return fmt::format("ws://127.0.0.1:{}{}", port(), path);
}

ShiftedClock& RelayRig::clock() {
  return parts_->clock;
}

void RelayRig::press(int level) {
  parts_->pressure.set(level);
}

Rows RelayRig::sql(const std::string& statement) const {
  return SqlSession(*options_.database).run(statement);
}

std::string RelayRig::value(const std::string& statement) const {
  const auto rows = sql(statement);
  if (rows.size() != 1) throw std::runtime_error(fmt::format("{} rows: {}", rows.size(), statement));
  return rows.front();
}

Rows RelayRig::await_sql(const std::string& statement, const Rows& wanted) const {
  Rows rows;
  await([&] {
    rows = sql(statement);
    return rows == wanted;
  });
  return rows;
}

double RelayRig::metric(const std::string& series) const {
  std::istringstream lines(parts_->registry.render());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(series + " ")) return std::stod(line.substr(series.size() + 1));
  }
  return 0;
}

bool RelayRig::await_metric(const std::string& series, double value) const {
  return await([&] { return metric(series) == value; });
}

bool await(const std::function<bool()>& condition) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < until) {
    if (condition()) return true;
    std::this_thread::sleep_for(kPollPause);
  }
  return false;
}

}  // namespace todoke::test

#include "rig.hpp"

#include <map>

#include <fmt/format.h>

#include "base/live_config.hpp"
#include "base/on_loop.hpp"
#include "harness/metric.hpp"
#include "http/rig.hpp"
#include "index/index_consumer.hpp"
#include "index/search_port.hpp"
#include "net/config.hpp"
#include "net/server.hpp"
#include "outbox/runner.hpp"
#include "pg/listener.hpp"
#include "pg/pool.hpp"
#include "relay/config.hpp"
#include "relay/relay.hpp"

namespace todoke::test {
namespace {

using net::test::Loop;

const Schema& schema() {
  static const Schema kSchema = [] {
    Schema all;
    all.add(net::config_keys());
    all.add(relay::config_keys(), relay::check_config);
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
  if (const auto checked = config.check(); !checked) throw UserError(checked.error().message);
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
        pool({.name = "control", .connect = connect_options(*options.database)}, clock, registry),
        read_pool({.name = "reads", .connect = connect_options(*options.database)}, clock, registry),
        listener(std::make_shared<pg::Listener>(
            main.executor(), pg::ListenerOptions{.connect = connect_options(*options.database)}, registry)),
        supervisor(main.executor(), clock, board, registry),
        live(config) {
    net::ServerConfig server_config;
    server_config.listen = "127.0.0.1:0";
    server_config.limits = net::limits_from(config);
    const auto router = std::make_shared<net::Router>();
    server_config.router = router;
    const auto worker = options.one_loop ? relay.executor() : connections.executor();
    server = std::make_shared<net::HttpServer>(std::move(server_config), main.executor(), std::vector{worker},
                                               registry);
    supervisor.add(server, true);
    supervisor.add(listener);
    relay::RelayParts parts{config,
                            clock,
                            relay.executor(),
                            reads.executor(),
                            pool,
                            read_pool,
                            *listener,
                            connect_options(*options.database),
                            log,
                            pressure,
                            nullptr,
                            registry,
                            *router,
                            "0.0.0-test",
                            [this](LiveConfig::Reader reader) { live.on_change(std::move(reader)); }};
    if (options.index) {
      parts.search = std::make_shared<index::IndexSearch>(read_pool, clock);
      supervisor.add(
          std::make_shared<outbox::Runner>(main.executor(), std::make_shared<index::IndexConsumer>(),
                                           outbox::RunnerOptions(), pool, *listener, log, clock, registry));
    }
    for (auto& service : relay::build_relay(std::move(parts)))
      supervisor.add(std::make_shared<OnLoop>(relay.executor(), std::move(service)));
    main.run(supervisor.start());
  }

  ~Parts() {
    main.run(supervisor.stop());
    // As in a node, no loop runs when the services go.
    connections.end();
    relay.end();
    reads.end();
    pool.close();
    read_pool.close();
  }

  Config config;
  ShiftedClock clock;
  metrics::Registry registry;
  HealthBoard board;
  outbox::LogSignal log;
  outbox::Pressure pressure;
  Loop main;
  Loop relay;
  Loop reads;
  Loop connections;  // their sessions hold the relay
  pg::Pool pool;
  pg::Pool read_pool;
  std::shared_ptr<pg::Listener> listener;
  std::shared_ptr<net::HttpServer> server;
  Supervisor supervisor;
  LiveConfig live;  // has the relay among its readers
};

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

void RelayRig::await_index() const {
  await_sql(
      "SELECT last_seq >= (SELECT coalesce(max(seq), 0) FROM cn_relay.events_outbox) "
      "FROM cn_relay.consumer_offsets WHERE consumer = 'index-v1'",
      {"t"});
}

void RelayRig::change(const Flags& settings) {
  std::map<std::string, ConfigRow> rows;
  for (const auto& [key, value] : settings) {
    auto& row = rows[std::string(service_of(key))];
    row.service = service_of(key);
    row.values.insert_or_assign(key, value);
  }
  std::vector<ConfigRow> list;
  for (auto& [service, row] : rows) list.push_back(std::move(row));
  parts_->main.call([&] { parts_->live.set_rows(list); });
  if (!parts_->live.problems().empty()) throw UserError(parts_->live.problems().front());
}

void RelayRig::press(int level) {
  parts_->pressure.set(level);
}

Rows RelayRig::sql(const std::string& statement) const {
  return SqlSession(options_.database->url()).run(statement);
}

std::string RelayRig::value(const std::string& statement) const {
  return SqlSession(options_.database->url()).value(statement);
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
  return metric_of(parts_->registry, series);
}

bool RelayRig::await_metric(const std::string& series, double value) const {
  return await([&] { return metric(series) == value; });
}

}  // namespace todoke::test

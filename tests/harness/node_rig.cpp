#include "harness/node_rig.hpp"

#include <map>
#include <stdexcept>

#include <fmt/format.h>

#include "app/data_folder.hpp"
#include "app/keys.hpp"
#include "app/node_options.hpp"
#include "app/roles.hpp"
#include "app/storage_watch.hpp"
#include "base/live_config.hpp"
#include "harness/http_rig.hpp"
#include "harness/metric.hpp"
#include "index/search_port.hpp"
#include "net/server.hpp"
#include "pg/listener.hpp"

namespace todoke::test {
namespace {

using net::test::Loop;

constexpr std::size_t kSpansMax = 1'000;

Config config_of(const Flags& flags) {
  Config config(app::schema());
  config.set_flag("server.listen", "127.0.0.1:0");
  config.set_flag("limits.rates", "off");
  // Tests of gossip switch it on.
  config.set_flag("gossip.enabled", "off");
  // A client of the test's own thread does not answer a close frame while the test does something else.
  config.set_flag("server.drain_timeout", "100ms");
  for (const auto& [key, value] : flags) config.set_flag(key, value);
  if (const auto checked = config.check(); !checked) throw UserError(checked.error().message);
  return config;
}

}  // namespace

// In the order of a node: routes and services hold timers of the loops, which so outlive them.
struct NodeRig::Parts {
  Parts(const NodeRigOptions& options, const std::string& url)
      : config(config_of(options.flags)),
        pools(app::pool_options(config, url), false, clock, registry),
        listener(std::make_shared<pg::Listener>(main.executor(), app::listener_options(url), registry)),
        supervisor(main.executor(), clock, board, registry),
        live(config) {
    auto server_config = app::public_server_config(config);
    server_config.router = router;
    const auto connection_loop = options.one_loop ? relay.executor() : connections.executor();
    server = std::make_shared<net::HttpServer>(std::move(server_config), main.executor(),
                                               std::vector{connection_loop}, registry, &tracer);
    tracer.enable(true);
    supervisor.add(server, true);
    supervisor.add(listener);
    const app::StorageWatchOptions watched{
        .folders = {{"data", "/"}},
        .free_bytes_min = app::free_bytes_min(config),
        .free_bytes = [this](const std::string&) { return free_bytes.load(); }};
    storage_watch = std::make_shared<app::StorageWatch>(main.executor(), watched, clock, storage,
                                                        pools.control, board, registry);
    live.on_change(
        [this](const Config& changed) { storage_watch->set_free_bytes_min(app::free_bytes_min(changed)); });
    supervisor.add(storage_watch);
    build_roles(options.roles, url);
    try {
      main.run(supervisor.start());
    } catch (...) {
      wind_down();
      throw;
    }
  }

  ~Parts() { wind_down(); }

  void wind_down() {
    main.run(supervisor.stop());
    // As in a node, no loop runs when the services go.
    for (auto* loop : {&connections, &relay, &gossip, &reads, &consumers}) loop->end();
    pools.close();
  }

  void build_roles(const std::vector<std::string>& roles, const std::string& url) {
    app::NodeParts parts{
        config,
        clock,
        main.executor(),
        relay.executor(),
        consumers.executor(),
        gossip.executor(),
        reads.executor(),
        pools,
        *listener,
        app::pool_options(config, url).connect,
        log,
        pressure,
        storage,
        std::make_shared<index::IndexSearch>(pools.reads, clock),
        board,
        registry,
        tracer,
        *router,
        *internal_router,
        [this](std::shared_ptr<Service> service) { supervisor.add(std::move(service)); },
        [this](std::shared_ptr<Service> service) { supervisor.add(std::move(service), true); },
        [](std::chrono::milliseconds) {},
        [this](LiveConfig::Reader reader) { live.on_change(std::move(reader)); },
        [this](std::function<void()> reader) { file_readers.push_back(std::move(reader)); },
        app::data_folder(config),
        true};
    for (const auto& name : roles) {
      const auto* role = app::find_role(name);
      if (role == nullptr) throw std::invalid_argument("no role " + name);
      role->build(parts);
    }
  }

  Config config;
  ShiftedClock clock;
  metrics::Registry registry;
  HealthBoard board;
  Tracer tracer{registry};
  outbox::LogSignal log;
  outbox::Pressure pressure;
  pg::Storage storage;
  std::atomic<std::uint64_t> free_bytes{1ULL << 40};
  Loop main;
  Loop relay;
  Loop reads;
  Loop consumers;
  Loop gossip;
  Loop connections;  // their sessions hold the relay
  app::Pools pools;
  std::shared_ptr<pg::Listener> listener;
  std::shared_ptr<net::Router> router = std::make_shared<net::Router>();
  std::shared_ptr<net::Router> internal_router = std::make_shared<net::Router>();
  std::shared_ptr<net::HttpServer> server;
  std::shared_ptr<app::StorageWatch> storage_watch;
  Supervisor supervisor;
  LiveConfig live;  // has the roles among its readers
  std::vector<std::function<void()>> file_readers;
};

NodeRig::NodeRig(NodeRigOptions options) : options_(std::move(options)) {
  if (!options_.database) options_.database = std::make_shared<TestDatabase>();
  if (options_.behind_proxy) proxy_ = std::make_unique<PgProxy>(options_.database->socket_folder());
  start();
}

NodeRig::~NodeRig() = default;

std::string NodeRig::url_of_node() const {
  if (!proxy_) return options_.database->url();
  return fmt::format("host={} user=postgres dbname={}", proxy_->folder(), options_.database->name());
}

void NodeRig::start() {
  parts_ = std::make_unique<Parts>(options_, url_of_node());
}

void NodeRig::stop() {
  parts_.reset();
}

void NodeRig::reread_files() {
  parts_->main.call([this] {
    for (const auto& reader : parts_->file_readers) reader();
  });
}

void NodeRig::change(const Flags& settings) {
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

void NodeRig::leave_free(std::uint64_t bytes) {
  parts_->free_bytes = bytes;
}

void NodeRig::fill_node(bool full) {
  parts_->pressure.set_node_full(full);
}

void NodeRig::press(int level, outbox::PressureInput input) {
  parts_->pressure.set(input, level);
}

ShiftedClock& NodeRig::clock() {
  return parts_->clock;
}

std::uint16_t NodeRig::port() const {
  return parts_->server->port();
}

std::string NodeRig::url(std::string_view path) const {
  return fmt::format("ws://127.0.0.1:{}{}", port(), path);
}

double NodeRig::metric(const std::string& series) const {
  return metric_of(parts_->registry, series);
}

bool NodeRig::await_metric(const std::string& series, double value) const {
  return await([&] { return metric(series) == value; });
}

namespace {

Task<void> answer_into(const net::Route& route, net::Request& request, std::string& body) {
  const auto response = co_await route.handler(request);
  body = response.body;
}

}  // namespace

std::string NodeRig::ask_internal(const std::string& path) const {
  net::Request request;
  request.method = "GET";
  request.target = path;
  const auto match = parts_->internal_router->match(request);
  if (match.route == nullptr) return match.answer.body;
  std::string body;
  parts_->main.run(answer_into(*match.route, request, body));
  return body;
}

std::vector<std::string> NodeRig::spans() {
  std::vector<std::string> texts;
  for (const auto& span : parts_->tracer.take(kSpansMax)) texts.push_back(otlp_json({span}, "0.0.0-test"));
  return texts;
}

Rows NodeRig::sql(const std::string& statement) const {
  return SqlSession(options_.database->url()).run(statement);
}

std::string NodeRig::value(const std::string& statement) const {
  return SqlSession(options_.database->url()).value(statement);
}

Rows NodeRig::await_sql(const std::string& statement, const Rows& wanted) const {
  Rows rows;
  await([&] {
    rows = sql(statement);
    return rows == wanted;
  });
  return rows;
}

}  // namespace todoke::test

#include "harness/node_rig.hpp"

#include <map>

#include <fmt/format.h>

#include "app/data_folder.hpp"
#include "app/keys.hpp"
#include "app/node_frame.hpp"
#include "harness/http_rig.hpp"
#include "harness/metric.hpp"

namespace todoke::test {
namespace {

using net::test::Loop;

constexpr std::size_t kSpansMax = 1'000;

Config config_of(const Flags& flags) {
  Config config(app::schema());
  config.set_flag("server.listen", "127.0.0.1:0");
  config.set_flag("limits.rates", "off");
  // Tests of gossip, and of what a node says of itself, switch them on.
  config.set_flag("gossip.enabled", "off");
  config.set_flag("bootstrap.enabled", "off");
  // A client of the test's own thread does not answer a close frame while the test does something else.
  config.set_flag("server.drain_timeout", "100ms");
  for (const auto& [key, value] : flags) config.set_flag(key, value);
  if (const auto checked = config.check(); !checked) throw UserError(checked.error().message);
  return config;
}

}  // namespace

struct NodeRig::Parts {
  Parts(const NodeRigOptions& options, const std::string& url)
      : config(config_of(options.flags)),
        frame(config, clock, state,
              {main.executor(),
               relay.executor(),
               consumers.executor(),
               gossip.executor(),
               reads.executor(),
               {options.one_loop ? relay.executor() : connections.executor()},
               main.executor()},
              url, false) {
    state.tracer.enable(true);
    frame.supervisor.add(frame.server, true);
    frame.supervisor.add(internal);
    frame.supervisor.add(frame.listener);
    app::StorageWatchOptions watched;
    watched.folders = {{"data", "/"}};
    watched.free_bytes = [this](const std::string&) { return free_bytes.load(); };
    frame.add_storage_watch(std::move(watched));
    frame.build_roles(options.roles, app::data_folder(config), true);
    try {
      main.run(frame.supervisor.start());
    } catch (...) {
      wind_down();
      throw;
    }
  }

  ~Parts() { wind_down(); }

  void wind_down() {
    main.run(frame.supervisor.stop());
    // As in a node, no loop runs when the services go.
    for (auto* loop : {&connections, &relay, &gossip, &reads, &consumers}) loop->end();
    frame.pools.close();
  }

  Config config;
  ShiftedClock clock;
  app::NodeState state;
  std::atomic<std::uint64_t> free_bytes{1ULL << 40};
  Loop main;
  Loop relay;
  Loop reads;
  Loop consumers;
  Loop gossip;
  Loop connections;  // their sessions hold the relay
  app::NodeFrame frame;
  std::shared_ptr<net::HttpServer> internal = make_internal();

 private:
  std::shared_ptr<net::HttpServer> make_internal() {
    net::ServerConfig server;
    server.name = "internal";
    server.listen = "127.0.0.1:0";
    server.router = frame.internal_router;
    return std::make_shared<net::HttpServer>(std::move(server), main.executor(), std::vector{main.executor()},
                                             state.registry);
  }
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
  parts_->main.call([this] { parts_->frame.read_files(); });
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
  parts_->main.call([&] { parts_->frame.live.set_rows(list); });
  if (!parts_->frame.live.problems().empty()) throw UserError(parts_->frame.live.problems().front());
}

void NodeRig::leave_free(std::uint64_t bytes) {
  parts_->free_bytes = bytes;
}

void NodeRig::press(int level, outbox::PressureInput input) {
  parts_->state.pressure.set(input, level);
}

outbox::EventPort& NodeRig::events() {
  return *parts_->frame.events();
}

ShiftedClock& NodeRig::clock() {
  return parts_->clock;
}

std::uint16_t NodeRig::port() const {
  return parts_->frame.server->port();
}

std::uint16_t NodeRig::internal_port() const {
  return parts_->internal->port();
}

std::string NodeRig::url(std::string_view path) const {
  return fmt::format("ws://127.0.0.1:{}{}", port(), path);
}

double NodeRig::metric(const std::string& series) const {
  return metric_of(parts_->state.registry, series);
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
  const auto match = parts_->frame.internal_router->match(request);
  if (match.route == nullptr) return match.answer.body;
  std::string body;
  parts_->main.run(answer_into(*match.route, request, body));
  return body;
}

std::vector<std::string> NodeRig::spans() {
  std::vector<std::string> texts;
  for (const auto& span : parts_->state.tracer.take(kSpansMax))
    texts.push_back(otlp_json({span}, "0.0.0-test"));
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

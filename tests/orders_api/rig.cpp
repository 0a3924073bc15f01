#include "orders_api/rig.hpp"

#include <stdexcept>

#include <fmt/format.h>

#include "harness/metric.hpp"
#include "net/config.hpp"
#include "net/server.hpp"
#include "orders/intake/api.hpp"
#include "orders/intake/config.hpp"
#include "pg/listener.hpp"
#include "pg/pool.hpp"

namespace todoke::test {
namespace {

using net::test::Loop;
using net::test::RawClient;

constexpr std::size_t kSpansMax = 1'000;

const Schema& schema() {
  static const Schema kSchema = [] {
    Schema all;
    all.add(net::config_keys());
    all.add(orders::api_config_keys());
    return all;
  }();
  return kSchema;
}

Config config_of(const Flags& flags) {
  Config config(schema());
  for (const auto& [key, value] : flags) config.set_flag(key, value);
  return config;
}

pg::ConnectOptions through(const PgProxy& proxy, const TestDatabase& database) {
  pg::ConnectOptions options;
  options.url = fmt::format("host={} user=postgres dbname={}", proxy.folder(), database.name());
  return options;
}

}  // namespace

struct OrdersRig::Parts {
  Parts(const Flags& flags, const pg::ConnectOptions& database)
      : config(config_of(flags)),
        pool({.connect = database}, clock, registry),
        listener(std::make_shared<pg::Listener>(main.executor(), pg::ListenerOptions{.connect = database},
                                                registry)),
        supervisor(main.executor(), clock, board, registry) {
    net::ServerConfig server_config;
    server_config.listen = "127.0.0.1:0";
    server_config.limits = net::limits_from(config);
    const auto router = std::make_shared<net::Router>();
    server_config.router = router;
    server = std::make_shared<net::HttpServer>(std::move(server_config), main.executor(),
                                               std::vector{connections.executor()}, registry, &tracer);
    tracer.enable(true);
    supervisor.add(server, true);
    supervisor.add(listener);
    const auto halts = std::make_shared<orders::Halts>(main.executor(), pool, *listener, clock, registry);
    supervisor.add(halts);
    auto api = orders::build_api(
        {config, clock, main.executor(), pool, *listener, database, registry, *router, "paper", halts});
    for (auto& service : api.services) supervisor.add(std::move(service));
    supervisor.add(api.stops_first, true);
    reload = api.read_tokens;
    wake_waiters = api.wake_waiters;
    main.run(supervisor.start());
  }

  ~Parts() {
    main.run(supervisor.stop());
    pool.close();
  }

  Config config;
  SystemClock clock;
  metrics::Registry registry;
  Tracer tracer{registry};
  HealthBoard board;
  Loop main;
  Loop connections;
  pg::Pool pool;
  std::shared_ptr<pg::Listener> listener;
  std::shared_ptr<net::HttpServer> server;
  Supervisor supervisor;
  std::function<void()> reload;
  std::function<void()> wake_waiters;
};

std::string order_body(const std::string& key, const std::map<std::string, std::string>& changes) {
  std::map<std::string, std::string> members{{"instrument", R"("BTC-USD")"},
                                             {"side", R"("BUY")"},
                                             {"qty", "0.5"},
                                             {"idempotency_key", fmt::format("\"{}\"", key)}};
  for (const auto& [name, value] : changes) members[name] = value;
  std::string text;
  for (const auto& [name, value] : members) {
    if (!value.empty()) text += fmt::format("{}\"{}\":{}", text.empty() ? "" : ",", name, value);
  }
  return "{" + text + "}";
}

std::string member(const std::string& json, std::string_view path) {
  const auto document = read_json(json);
  if (!document) throw std::runtime_error("no JSON: " + json);
  const auto* value = &*document;
  while (value != nullptr && !path.empty()) {
    const auto dot = path.find('.');
    value = value->member(path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  using Kind = JsonValue::Kind;
  if (value == nullptr) return "null";
  if (value->is(Kind::boolean)) return value->flag ? "true" : "false";
  return value->text;
}

std::string code(const RawResponse& response) {
  return fmt::format("{} {}", response.status, member(response.body, "code"));
}

OrdersRig::OrdersRig(const Flags& flags) : OrdersRig(flags, std::make_shared<TestDatabase>()) {}

OrdersRig::OrdersRig(const Flags& flags, std::shared_ptr<TestDatabase> database)
    : database_(std::move(database)),
      proxy_(std::make_unique<PgProxy>(database_->socket_folder())),
      parts_(std::make_unique<Parts>(flags, through(*proxy_, *database_))) {}

std::unique_ptr<OrdersRig> OrdersRig::sibling() const {
  return std::unique_ptr<OrdersRig>(new OrdersRig({}, database_));
}

std::vector<std::string> OrdersRig::spans() {
  std::vector<std::string> texts;
  for (const auto& span : parts_->tracer.take(kSpansMax)) texts.push_back(otlp_json({span}, "0.0.0-test"));
  return texts;
}

OrdersRig::~OrdersRig() = default;

RawResponse OrdersRig::ask(const std::string& request) const {
  RawClient client(port());
  return client.ask(request);
}

RawResponse OrdersRig::post(const std::string& key, const std::string& body, const std::string& more) const {
  return ask(
      net::test::post("/do/order", body,
                      fmt::format("Content-Type: application/json\r\nIdempotency-Key: {}\r\n{}", key, more)));
}

RawResponse OrdersRig::get(const std::string& target, const std::string& more) const {
  return ask(net::test::get(target, more));
}

std::uint16_t OrdersRig::port() const {
  return parts_->server->port();
}

Rows OrdersRig::sql(const std::string& statement) const {
  return SqlSession(database_->url()).run(statement);
}

std::string OrdersRig::value(const std::string& statement) const {
  return SqlSession(database_->url()).value(statement);
}

double OrdersRig::metric(const std::string& series) const {
  return metric_of(parts_->registry, series);
}

void OrdersRig::reload() {
  parts_->main.call(parts_->reload);
}

void OrdersRig::wake_waiters() {
  parts_->wake_waiters();
}

void OrdersRig::stop() {
  parts_.reset();
}

}  // namespace todoke::test

// The order dispatcher in one run: orders/s that its API accepts; the time of a claim behind rows that wait
// for their next try, with and without statistics, and in order by instrument; orders/s that a worker settles
// with a broker that does nothing, beside other queues on the same Postgres with jobs that do nothing, in
// rounds, so that a disturbance of the machine meets them alike. Started by bench/orders, which gets the
// other queues.
//
//   orders_bench [NAME=PROGRAM]...   PROGRAM is called with a database URL and a number of jobs and prints
//                                    jobs/s
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>

#include "app/keys.hpp"
#include "base/percent.hpp"
#include "base/trace.hpp"
#include "embedded_bench.hpp"
#include "orders/worker/dispatcher.hpp"
#include "orders/worker/sql_port.hpp"
#include "orders_load/http_load.hpp"
#include "own_node.hpp"

namespace todoke::bench {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

constexpr std::size_t kAccepted = 20'000;
constexpr int kSettled = 30'000;
constexpr int kWaiting = 200'000;
constexpr int kClaims = 200;
constexpr int kInstruments = 100;
constexpr int kRounds = 3;
// What both other queues are given: their fastest settings. Ours for comparison.
constexpr const char* kConcurrency = "64";
constexpr const char* kBatch = "1000";

constexpr pg::Statement kAddOrders{
    "add_orders",
    "WITH n AS (SELECT n, format('%s-%s', $1::text, lpad(n::text, 8, '0')) AS key FROM generate_series(1, "
    "$2::int) n), "
    "l AS (INSERT INTO orders.idempo_ledger (idempotency_key, request_digest) "
    "SELECT key, 'sha256:' || key FROM n) "
    "INSERT INTO orders.outbox_orders (idempotency_key, order_request_json, request_digest, status, "
    "next_run_at) "
    "SELECT key, json_build_object('instrument', 'INSTR-' || n % $5::int, 'side', 'BUY', 'qty', 1, 'price', "
    "100.5, "
    "'time_in_force', 'IOC', 'idempotency_key', key)::jsonb, 'sha256:' || key, $3::text, "
    "now() + $4::int * interval '1 second' FROM n"};
constexpr pg::Statement kOpen{
    "open",
    "SELECT EXISTS (SELECT FROM orders.outbox_orders WHERE status IN ('pending', 'sending', 'failed'))"};
constexpr pg::Statement kFinal{
    "final",
    "SELECT count(*) FROM orders.outbox_orders o JOIN orders.idempo_ledger l USING (idempotency_key) "
    "WHERE o.status = 'succeeded' AND l.status = 'succeeded'"};

std::vector<std::pair<std::string, std::string>> peers;  // from the command line

double at(const std::vector<double>& sorted, double part) {
  return sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1))];
}

double middle_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return at(values, 0.5);
}

std::string post_of(const std::string& prefix, std::size_t number) {
  const auto key = fmt::format("{}-{:08}", prefix, number);
  const auto body = fmt::format(
      R"({{"instrument":"BTC-USD","side":"BUY","qty":0.25,"price":101.5,"time_in_force":"GTC","idempotency_key":"{}"}})",
      key);
  return fmt::format(
      "POST /do/order HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nIdempotency-Key: "
      "{}\r\n"
      "Content-Length: {}\r\n\r\n{}",
      key, body.size(), body);
}

void measure_api() {
  const OwnNode node({"--outbox.enabled", "false"});
  print(fmt::format("accepted orders, {} each\n", kAccepted));
  for (const std::size_t connections : {std::size_t{1}, std::size_t{16}, std::size_t{64}}) {
    const auto count = connections == 1 ? kAccepted / 10 : kAccepted;
    const auto result = post_all(
        node.address(), connections, count,
        [&](std::size_t number) { return post_of(fmt::format("api-{}", connections), number); }, 201);
    print(fmt::format("  {:>2} connections   {:>7.0f}/s   p50 {:.2f} ms   p99 {:.2f} ms\n", connections,
                      static_cast<double>(count) / result.seconds, at(result.answer_ms, 0.5),
                      at(result.answer_ms, 0.99)));
  }
}

// What a dispatcher needs of a node.
struct Surroundings {
  Surroundings(const Executor& executor, const std::string& url)
      : config(app::schema()),
        pool(pool_options(url), clock, registry),
        listener(executor, listener_options(url), registry),
        tracer(registry) {
    config.set_flag("outbox.enabled", "true");
    config.set_flag("outbox.concurrency", kConcurrency);
    config.set_flag("outbox.batch", kBatch);
    config.set_flag("broker.adapter", "noop");
  }

  static pg::PoolOptions pool_options(const std::string& url) {
    pg::PoolOptions options;
    options.connect.url = url;
    return options;
  }
  static pg::ListenerOptions listener_options(const std::string& url) {
    pg::ListenerOptions options;
    options.connect.url = url;
    return options;
  }

  Config config;
  SystemClock clock;
  metrics::Registry registry;
  HealthBoard health;
  pg::Pool pool;
  pg::Listener listener;
  Tracer tracer;
};

Task<void> add_orders(pg::Connection& connection, std::string prefix, int count, std::string status,
                      int due_in_seconds, int instruments = 1) {
  pg::Params params(prefix, count, status, due_in_seconds, instruments);
  co_await connection.query(kAddOrders, std::move(params), soon());
}

Task<void> clear(pg::Connection& connection) {
  std::string script = "TRUNCATE orders.outbox_orders, orders.idempo_ledger";
  co_await connection.execute_script(script, soon());
}

Task<void> analyze(pg::Connection& connection) {
  std::string script = "ANALYZE orders.outbox_orders, orders.idempo_ledger";
  co_await connection.execute_script(script, soon());
}

class Claims {
 public:
  Claims(const Executor& executor, const std::string& url, bool in_order)
      : around_(executor, url),
        halts_(executor, around_.pool, around_.listener, around_.clock, around_.registry),
        metrics_(around_.registry, 6, "noop"),
        port_(connect_to(url), options(in_order), halts_, around_.clock, metrics_) {}

  // Of claims that find `found` orders each. With a prefix: each finds the one order that is added before it.
  Task<std::vector<double>> milliseconds(pg::Connection& connection, std::string prefix, int claims,
                                         std::size_t found) {
    std::vector<double> times;
    for (int i = 0; i < claims; ++i) {
      if (!prefix.empty()) co_await add_orders(connection, fmt::format("{}-{}", prefix, i), 1, "pending", -1);
      const auto began = Steady::now();
      const auto jobs = co_await port_.claim(32);
      times.push_back(seconds_since(began) * 1e3);
      if (jobs.size() != found) {
        throw std::runtime_error(fmt::format("a claim got {} orders, not {}", jobs.size(), found));
      }
    }
    std::sort(times.begin(), times.end());
    co_return times;
  }

  void close() {
    port_.close();
    around_.pool.close();
  }

 private:
  static pg::ConnectOptions connect_to(const std::string& url) {
    pg::ConnectOptions connect;
    connect.url = url;
    return connect;
  }
  static orders::SqlPortOptions options(bool in_order) {
    orders::SqlPortOptions options;
    options.worker = "bench";
    options.adapter = "noop";
    options.in_order = in_order;
    return options;
  }

  Surroundings around_;
  orders::Halts halts_;
  orders::OrderMetrics metrics_;
  orders::SqlPort port_;
};

void print_claim(const std::string& name, const std::vector<double>& times,
                 const std::vector<double>& alone) {
  print(fmt::format("  {:<62} p50 {:.3f} ms   p99 {:.3f} ms   {:.2f}x\n", name, at(times, 0.5),
                    at(times, 0.99), at(times, 0.5) / at(alone, 0.5)));
}

Task<void> measure_claim(const Executor& executor, const std::string& url, pg::Connection& connection) {
  print(fmt::format("claim of one order, {} times\n", kClaims));
  Claims claims(executor, url, false);
  const auto alone = co_await claims.milliseconds(connection, "alone", kClaims, 1);
  print_claim("alone", alone, alone);
  co_await add_orders(connection, "waiting", kWaiting, "failed", 3'600);
  const auto unknown = co_await claims.milliseconds(connection, "unknown", kClaims, 1);
  print_claim(fmt::format("behind {} rows that wait, without statistics", kWaiting), unknown, alone);
  co_await analyze(connection);
  const auto behind = co_await claims.milliseconds(connection, "behind", kClaims, 1);
  print_claim(fmt::format("behind {} rows that wait", kWaiting), behind, alone);
  claims.close();
  co_await clear(connection);

  Claims in_order(executor, url, true);
  co_await add_orders(connection, "queued", kWaiting, "pending", -1, kInstruments);
  constexpr int kFullClaims = kInstruments / 32;
  const auto full = co_await in_order.milliseconds(connection, "", kFullClaims, 32);
  print_claim(fmt::format("32 orders in order by {} instruments, of {}", kInstruments, kWaiting), full,
              alone);
  co_await in_order.milliseconds(connection, "", 1, kInstruments % 32);
  const auto none = co_await in_order.milliseconds(connection, "", kClaims, 0);
  print_claim("the same when each instrument has one under way", none, alone);
  in_order.close();
  co_await clear(connection);
}

Task<double> measure_settling(const Executor& executor, const std::string& url, pg::Connection& connection) {
  Surroundings around(executor, url);
  co_await add_orders(connection, "settle", kSettled, "pending", -1);
  co_await analyze(connection);
  pg::ConnectOptions connect;
  connect.url = url;
  Signal settled(executor);
  const auto halts =
      std::make_shared<orders::Halts>(executor, around.pool, around.listener, around.clock, around.registry);
  orders::DispatcherParts parts{
      around.config, around.clock,    executor,      around.pool, around.listener,       connect,
      around.health, around.registry, around.tracer, halts,       [&] { settled.set(); }};
  auto dispatcher = orders::build_dispatcher(parts);
  std::size_t running = 0;
  Signal ended(executor);
  const auto began = Steady::now();
  for (const auto& service : dispatcher.services) {
    co_await service->start();
    ++running;
    spawn(executor, service->run(), [&](const std::exception_ptr& failure) {
      if (failure) std::fputs((describe(failure) + "\n").c_str(), stderr);
      if (--running == 0) ended.set();
    });
  }
  for (bool is_open = true; is_open;) {
    settled.reset();
    co_await settled.wait_for(100ms);
    const auto open = co_await connection.query(kOpen, {}, soon());
    is_open = open.one().get<bool>(0);
  }
  const double rate = kSettled / seconds_since(began);
  const auto final = co_await connection.query(kFinal, {}, soon());
  if (final.one().get<std::int64_t>(0) != kSettled) throw std::runtime_error("not every order was settled");
  std::reverse(dispatcher.services.begin(), dispatcher.services.end());
  for (const auto& service : dispatcher.services) service->stop();
  co_await ended.wait();
  around.pool.close();
  co_return rate;
}

// The last line that a program prints, as a number.
double run_peer(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), &pclose);
  if (!pipe) throw std::runtime_error("could not start: " + command);
  std::string last;
  std::array<char, 256> line{};
  while (std::fgets(line.data(), static_cast<int>(line.size()), pipe.get()) != nullptr) last = line.data();
  try {
    return std::stod(last);
  } catch (const std::logic_error&) {
    throw std::runtime_error("no number came from: " + command);
  }
}

Task<void> measure(embedded::Postgres& server) {
  const auto executor = co_await asio::this_coro::executor;
  const auto url = server.connection_string();
  const auto connection = co_await connect_migrated(server);
  // As the program does: what is not its own is audited row by row.
  std::string actor = "SET orders.actor = 'bench'";
  co_await connection->execute_script(actor, soon());
  co_await measure_claim(executor, url, *connection);
  print(fmt::format("settled/s, {} each, nothing to do; todoke with ledger and journal\n", kSettled));
  std::map<std::string, std::vector<double>> rates;
  for (int round = 1; round <= kRounds; ++round) {
    const auto ours = co_await measure_settling(executor, url, *connection);
    co_await clear(*connection);
    rates["todoke"].push_back(ours);
    auto line = fmt::format("  round {}   todoke {:.0f}", round, ours);
    for (const auto& [name, program] : peers) {
      const auto database = fmt::format("{}_{}", name, round);
      std::string make = fmt::format("CREATE DATABASE {}", database);
      co_await connection->execute_script(make, soon());
      const auto peer_url = fmt::format("postgresql://todoke@localhost/{}?host={}&port={}", database,
                                        percent_encode(server.layout().sockets), embedded::kPort);
      double rate = 0;
      co_await run_blocking([&] { rate = run_peer(fmt::format("{} '{}' {}", program, peer_url, kSettled)); });
      rates[name].push_back(rate);
      line += fmt::format("   {} {:.0f} ({:.2f}x)", name, rate, rate / ours);
    }
    print(line + "\n");
  }
  std::string line = "  middle ";
  const auto ours = middle_of(rates["todoke"]);
  line += fmt::format("   todoke {:.0f}", ours);
  for (const auto& [name, program] : peers) {
    const auto rate = middle_of(rates[name]);
    line += fmt::format("   {} {:.0f} ({:.2f}x)", name, rate, rate / ours);
  }
  print(line + "\n");
}

int run(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto equals = argument.find('=');
    if (equals == std::string::npos) {
      std::fputs("orders_bench [NAME=PROGRAM]...\n", stderr);
      return 2;
    }
    peers.emplace_back(argument.substr(0, equals), argument.substr(equals + 1));
  }
  measure_api();
  return run_on_embedded(measure);
}

}  // namespace
}  // namespace todoke::bench

int main(int argc, char** argv) {
  try {
    return todoke::bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::fputs((std::string(error.what()) + "\n").c_str(), stderr);
    return 1;
  }
}

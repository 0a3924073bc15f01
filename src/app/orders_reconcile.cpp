#include "app/orders_reconcile.hpp"

#include <cstdio>
#include <memory>
#include <optional>

#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>

#include "app/connection_in_use.hpp"
#include "orders/http_adapter.hpp"
#include "orders/paper_adapter.hpp"
#include "orders/reconcile.hpp"
#include "orders/timestamp.hpp"
#include "orders/worker_config.hpp"
#include "pg/pool.hpp"

namespace todoke::app {
namespace {

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
}

// The broker as a command can ask it, with what it needs.
struct AskableBroker {
  explicit AskableBroker(const Config& config) {
    pg::PoolOptions options;
    options.connect.url = database_in_use(config).url;
    pool = std::make_unique<pg::Pool>(options, clock, registry);
  }
  AskableBroker(const AskableBroker&) = delete;
  AskableBroker& operator=(const AskableBroker&) = delete;
  ~AskableBroker() { pool->close(); }

  SystemClock clock;
  metrics::Registry registry;
  std::unique_ptr<pg::Pool> pool;
  std::unique_ptr<orders::BrokerAdapter> adapter;  // null: it can't be asked from here
};

std::unique_ptr<orders::BrokerAdapter> adapter_of(const std::string& name, const Config& config,
                                                  const Executor& executor, AskableBroker& broker) {
  std::unique_ptr<orders::BrokerAdapter> adapter;
  if (name == "paper") {
    auto options = orders::PaperOptions::from(config);
    if (!options) throw UserError(options.error().message);
    adapter = std::make_unique<orders::PaperAdapter>(std::move(*options), *broker.pool, broker.clock);
  } else if (name == "http") {
    auto options = orders::HttpAdapterOptions::from(config, 1);
    if (!options) throw UserError(options.error().message);
    adapter = std::make_unique<orders::HttpAdapter>(executor, std::move(*options));
  }
  if (adapter && !adapter->can_find()) adapter.reset();
  return adapter;
}

Task<void> compare(pg::Connection& connection, const Config& config, std::string name, SystemTime since,
                   bool& agree) {
  const auto executor = co_await asio::this_coro::executor;
  AskableBroker broker(config);
  broker.adapter = adapter_of(name, config, executor, broker);
  if (!broker.adapter) {
    print(fmt::format("the broker of {} can't be asked by this command: ledger, outbox and journal only\n",
                      name));
  }
  orders::ReconcileOptions options;
  options.adapter = name;
  options.since = since;
  options.broker = broker.adapter.get();
  options.broker_timeout = config.get(orders::keys::kBrokerTimeout);
  options.on_difference = [](std::int64_t id, const std::string& key_hash, const std::string& difference) {
    print(fmt::format("order {} ({}): {}\n", id, key_hash.substr(0, 12), difference));
  };
  options.on_progress = [](const orders::ReconcileProgress& progress) {
    std::fputs(fmt::format("{} orders looked at\n", progress.orders).c_str(), stderr);
  };
  const auto seen = co_await orders::reconcile(connection, std::move(options));
  print(fmt::format("{} orders, {} not settled yet, {} asked at the broker, {} with differences\n",
                    seen.orders, seen.open, seen.asked, seen.different));
  agree = seen.different == 0;
}

}  // namespace

int reconcile_orders(const Config& config, const Arguments& arguments) {
  const auto adapter = arguments.options.find("adapter");
  const auto since = arguments.options.find("since");
  if (adapter == arguments.options.end() || since == arguments.options.end()) {
    throw UsageError("orders reconcile: say --adapter NAME and --since TIME");
  }
  const auto time = orders::parse_timestamp(since->second);
  if (!time)
    throw UsageError(fmt::format("--since {}: say a time such as 2026-01-31T12:00:00Z", since->second));
  bool agree = false;
  with_running_database(config, [&](pg::Connection& connection) {
    return compare(connection, config, adapter->second, *time, agree);
  });
  return agree ? 0 : 1;
}

}  // namespace todoke::app

#include "app/orders_reconcile.hpp"

#include <cstdio>
#include <memory>
#include <optional>

#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>

#include "app/command.hpp"
#include "app/connection_in_use.hpp"
#include "orders/admin/reconcile.hpp"
#include "orders/brokers/fix/book.hpp"
#include "orders/brokers/http/adapter.hpp"
#include "orders/brokers/paper/adapter.hpp"
#include "orders/worker/config.hpp"
#include "pg/pool.hpp"

namespace todoke::app {
namespace {

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
  std::unique_ptr<orders::BrokerAdapter> adapter;
  std::unique_ptr<orders::BrokerBook> book;  // null: it can't be asked
};

void open_book(AskableBroker& broker, const std::string& name, const Config& config,
               const Executor& executor) {
  const auto timeout = config.get(orders::keys::kBrokerTimeout);
  if (name == "fix") {
    broker.book = std::make_unique<orders::FixBook>(*broker.pool);
  } else if (name == "paper") {
    auto options = orders::PaperOptions::from(config);
    if (!options) throw UserError(options.error().message);
    broker.adapter = std::make_unique<orders::PaperAdapter>(std::move(*options), *broker.pool, broker.clock);
  } else if (name == "http") {
    auto options = orders::HttpAdapterOptions::from(config, 1);
    if (!options) throw UserError(options.error().message);
    broker.adapter = std::make_unique<orders::HttpAdapter>(executor, std::move(*options));
  }
  if (broker.adapter && broker.adapter->can_find()) {
    broker.book = std::make_unique<orders::AdapterBook>(*broker.adapter, timeout);
  }
}

std::string summary(const orders::ReconcileProgress& seen) {
  auto text = fmt::format("{} orders, {} not settled yet, {} compared with the broker, {} with differences",
                          seen.orders, seen.open, seen.asked, seen.different);
  if (seen.not_asked > 0) text += fmt::format(", {} not compared with the broker", seen.not_asked);
  if (seen.changed > 0) text += fmt::format(", {} changed meanwhile", seen.changed);
  return text + "\n";
}

Task<void> compare(pg::Connection& connection, const Config& config, std::string name, SystemTime since,
                   bool& agree) {
  const auto executor = co_await asio::this_coro::executor;
  AskableBroker broker(config);
  open_book(broker, name, config, executor);
  if (!broker.book) {
    print(fmt::format("the broker of {} can't be asked: ledger, outbox and journal only\n", name));
  }
  orders::ReconcileOptions options;
  options.adapter = name;
  options.since = since;
  options.broker = broker.book.get();
  options.on_notice = [](const std::string& notice) { print(notice + "\n"); };
  options.on_difference = [](std::int64_t id, const std::string& key_hash, const std::string& difference) {
    print(fmt::format("order {} ({}): {}\n", id, key_hash.substr(0, 12), difference));
  };
  options.on_progress = [](const orders::ReconcileProgress& progress) {
    std::fputs(fmt::format("{} orders looked at\n", progress.orders).c_str(), stderr);
  };
  const auto seen = co_await orders::reconcile(connection, std::move(options));
  print(summary(seen));
  agree = seen.different == 0 && seen.not_asked == 0;
}

}  // namespace

int reconcile_orders(const Config& config, const Arguments& arguments) {
  const auto adapter = arguments.option("adapter");
  const auto since = time_option(arguments, "since");
  if (!adapter || !since) throw UsageError("orders reconcile: say --adapter NAME and --since TIME");
  bool agree = false;
  with_running_database(config, [&](pg::Connection& connection) {
    return compare(connection, config, *adapter, *since, agree);
  });
  return agree ? 0 : 1;
}

}  // namespace todoke::app

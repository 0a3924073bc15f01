#include "rig.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include "harness/metric.hpp"

namespace todoke::test {
namespace {

std::vector<std::string> command(const std::string& database_url, const std::filesystem::path& folder) {
  return {todoke_binary(),
          "run",
          "--roles",
          "orders",
          "--data_dir",
          folder.string(),
          "--database.url",
          database_url,
          "--server.listen",
          "127.0.0.1:0",
          "--server.internal_listen",
          "127.0.0.1:0",
          "--log.format",
          "json"};
}

// Later entries win in execve's eyes only where the earlier is gone: each variable once. A name without a
// value takes the default away.
Environment with_defaults(const Environment& environment) {
  Environment all{"OUTBOX_ENABLED=true", "OUTBOX_BACKOFF_SEC=[0]", "OUTBOX_LOCK_LEASE_SEC=2",
                  "BROKER_TIMEOUT_MS=500", "OUTBOX_POLL_INTERVAL_SEC=0.05"};
  for (const auto& entry : environment) {
    const auto name = entry.substr(0, entry.find('='));
    std::erase_if(all, [&](const std::string& known) { return known.starts_with(name + "="); });
    if (name != entry) all.push_back(entry);
  }
  return all;
}

}  // namespace

OrderNode::OrderNode(const std::string& database_url, const Environment& environment)
    : process_(command(database_url, folder_.path()), with_defaults(environment)) {}

std::string OrderNode::worker() const {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return fmt::format("{}:{}:", host.data(), process_.pid());
}

std::string OrderNode::address(const std::string& field) {
  wait_ready();
  const auto log = process_.err();
  const auto line = log.find("\"msg\":\"ready\"");
  const auto begin = log.find("\"" + field + "\":\"", line) + field.size() + 4;
  return log.substr(begin, log.find('"', begin) - begin);
}

std::string OrderNode::public_url() {
  return "http://" + address("public");
}

double OrderNode::metric(const std::string& series) {
  return metric_in(http_get("http://" + address("internal") + "/metrics").body, series).value_or(-1);
}

void OrderNode::wait_for_metric(const std::string& series, double value) {
  wait_until(fmt::format("{} to be {}", series, value), [&] { return metric(series) == value; });
}

std::string OrderNode::health() {
  return http_get("http://" + address("internal") + "/healthz").body;
}

Exit OrderNode::stop() {
  process_.kill(SIGTERM);
  return process_.wait();
}

void OrdersTest::accept(const std::string& key, const std::string& instrument,
                        const std::string& time_in_force) {
  run(fmt::format(
      "BEGIN; SET LOCAL orders.actor = 'api';"
      "INSERT INTO orders.idempo_ledger (idempotency_key, request_digest) VALUES ('{0}', md5('{0}'));"
      "INSERT INTO orders.outbox_orders (idempotency_key, order_request_json, request_digest) VALUES ('{0}',"
      " '{{\"instrument\": \"{1}\", \"side\": \"BUY\", \"qty\": 2, \"price\": 10.5,"
      " \"time_in_force\": \"{2}\", \"idempotency_key\": \"{0}\"}}', md5('{0}'));"
      "COMMIT; NOTIFY orders_pending",
      key, instrument, time_in_force));
}

std::unique_ptr<OrderNode> OrdersTest::node(const Environment& environment) {
  auto made = std::make_unique<OrderNode>(test_database, environment);
  made->wait_ready();
  return made;
}

void OrdersTest::await(const std::string& sql, const std::string& wanted) {
  std::string last;
  try {
    wait_until("", [&] {
      last = value(sql);
      return last == wanted;
    });
  } catch (const std::exception&) {
    FAIL() << sql << "\n  is '" << last << "' and not '" << wanted << "'";
  }
}

void OrdersTest::await_status(const std::string& key, const std::string& status) {
  await(fmt::format("SELECT status FROM orders.outbox_orders WHERE idempotency_key = '{}'", key), status);
}

std::string OrdersTest::of(const std::string& key, const std::string& column) {
  return value(fmt::format("SELECT {} FROM orders.outbox_orders WHERE idempotency_key = '{}'", column, key));
}

std::string OrdersTest::ledger(const std::string& key, const std::string& column) {
  return value(fmt::format("SELECT {} FROM orders.idempo_ledger WHERE idempotency_key = '{}'", column, key));
}

std::string OrdersTest::disagreements() {
  return value(R"(
    SELECT coalesce(string_agg(format('%s: outbox %s, ledger %s', o.idempotency_key, o.status, l.status), E'\n'), '')
    FROM orders.outbox_orders o LEFT JOIN orders.idempo_ledger l ON l.idempotency_key = o.idempotency_key
    WHERE coalesce(o.last_error_code, '') <> 'IDEMPOTENCY_CONFLICT'
      AND ((o.status = 'succeeded') <> (coalesce(l.status, '') = 'succeeded')
        OR (o.status = 'aborted') <> (coalesce(l.status, '') = 'failed')))");
}

PaperHold::PaperHold(const TestDatabase& database) : session_(database.url()) {
  session_.run("BEGIN; LOCK TABLE orders.paper_book IN SHARE MODE");
}

void PaperHold::await_orders(int count) {
  wait_until(fmt::format("{} orders at the broker", count), [&] {
    return session_.value(
               "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
               " WHERE d.datname = current_database() AND l.relation = 'orders.paper_book'::regclass"
               " AND NOT l.granted") == std::to_string(count);
  });
}

void PaperHold::release() {
  session_.run("COMMIT");
}

Exit todoke_on(const TestDatabase& database, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), todoke_binary());
  return run_command(arguments, {"DATABASE_URL=" + database.url()});
}

}  // namespace todoke::test

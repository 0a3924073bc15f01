#include "rig.hpp"

#include <unistd.h>

#include <fmt/format.h>

namespace todoke::test {
namespace {

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
    : TodokeRun("orders", {}, {"--database.url", database_url, "--log.format", "json"},
                with_defaults(environment)) {}

std::string OrderNode::worker() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return fmt::format("{}:{}:", host.data(), process().pid());
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

// What a node tells of its orders: metrics, log lines, spans. Never their keys, never their content.
#include <mutex>
#include <sstream>

#include <fmt/format.h>

#include "harness/http_rig.hpp"
#include "rig.hpp"

namespace todoke::test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kKey = "secret-key-4711";
constexpr const char* kInstrument = "SECRET-INSTR";
// No time, id or port of a span or a log line can look like these.
constexpr const char* kQty = "123.456789012345";
constexpr const char* kPrice = "64250.123456789";
constexpr const char* kTrace = "0af7651916cd43dd8448eb211c80319c";

// Takes OTLP over HTTP and keeps what it gets.
class Collector {
 public:
  Collector() {
    server_.router->add("POST", "/v1/traces", [this](net::Request& request) { return take(request); });
    server_.start();
  }
  [[nodiscard]] std::string url() const { return server_.url(""); }
  std::vector<std::string> bodies() {
    const std::lock_guard lock(mutex_);
    return bodies_;
  }

 private:
  Task<net::Response> take(net::Request& request) {
    const std::lock_guard lock(mutex_);
    bodies_.push_back(request.body);
    co_return net::json_response(200, "{}");
  }

  std::mutex mutex_;
  std::vector<std::string> bodies_;
  net::test::Rig server_;
};

class OrderObservability : public OrdersTest {
 protected:
  // The spans as rows of a view: JSON is best asked by SQL.
  void keep_spans(const std::vector<std::string>& bodies) {
    run(R"(
      CREATE TABLE kept (span jsonb);
      CREATE VIEW spans AS
      SELECT span ->> 'name' AS name, span ->> 'traceId' AS trace, span ->> 'spanId' AS id,
        span ->> 'parentSpanId' AS parent, span #>> '{status,code}' IS NOT DISTINCT FROM '2' AS failed,
        (SELECT jsonb_object_agg(a ->> 'key', (SELECT value FROM jsonb_each_text(a -> 'value')))
         FROM jsonb_array_elements(span -> 'attributes') a) AS attributes
      FROM kept)");
    for (const auto& body : bodies) {
      run(
          fmt::format("INSERT INTO kept SELECT jsonb_path_query($otlp${}$otlp$, "
                      "'$.resourceSpans[*].scopeSpans[*].spans[*]')",
                      body));
    }
  }

  static int post_in_trace(const std::string& url) {
    const auto body =
        fmt::format(R"({{"instrument":"{}","side":"BUY","qty":{},"price":{},"idempotency_key":"{}"}})",
                    kInstrument, kQty, kPrice, kKey);
    const auto exit = run_command(
        {"curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-H", "Content-Type: application/json", "-H",
         std::string("Idempotency-Key: ") + kKey, "-H",
         fmt::format("traceparent: 00-{}-b7ad6b7169203331-01", kTrace), "-d", body, url + "/do/order"});
    return std::stoi(exit.out);
  }

  static void expect_hidden(const std::string& text) {
    for (const auto* secret : {kKey, kInstrument, kQty, kPrice}) EXPECT_THAT(text, Not(HasSubstr(secret)));
  }
};

TEST_F(OrderObservability, TheOldestOrderThatWaitsMayBeOneWhoseNextTryNobodyMakes) {
  accept("waiting-key");
  run("SET orders.actor = 'test'; UPDATE orders.outbox_orders SET status = 'failed', next_run_at = now() - "
      "interval '1 h'; RESET orders.actor");
  const auto idle = node({"OUTBOX_ENABLED=false"});
  wait_until("the gauge", [&] { return idle->metric("outbox_oldest_pending_seconds") >= 3'600; });
}

TEST_F(OrderObservability, EverySeriesIsThereFromTheStart) {
  const auto worker = node();
  for (const auto* series :
       {"outbox_claimed_total", "outbox_lock_lease_expired_total", "outbox_oldest_pending_seconds",
        "outbox_in_doubt", "outbox_breaker_state{adapter=\"paper\"}",
        "outbox_latency_ms_count{phase=\"send\"}", "outbox_latency_ms_count{phase=\"commit\"}"}) {
    EXPECT_EQ(worker->metric(series), 0) << series;
  }
  for (int attempt = 1; attempt <= 6; ++attempt) {
    EXPECT_EQ(worker->metric(fmt::format("outbox_retry_total{{attempt=\"{}\"}}", attempt)), 0) << attempt;
  }
  for (const auto* outcome : {"succeeded", "failed", "aborted", "conflict", "synced"}) {
    EXPECT_EQ(worker->metric(fmt::format("outbox_processed_total{{outcome=\"{}\"}}", outcome)), 0) << outcome;
  }
  // A worker claims as soon as it runs.
  EXPECT_GE(worker->metric("outbox_latency_ms_count{phase=\"claim\"}"), 0);
}

TEST_F(OrderObservability, ATryIsASpanOfTheClientsTraceAndTheSendItsChild) {
  Collector collector;
  const auto worker = node({"TODOKE_TRACE_ENDPOINT=" + collector.url(), "TODOKE_BROKER_PAPER_FIRST=down"});
  ASSERT_EQ(post_in_trace(worker->public_url()), 201);
  await_status(kKey, "succeeded");
  EXPECT_EQ(http_get(worker->public_url() + "/do/order/" + kKey).status, 200);
  worker->stop();  // what is not exported yet goes out at the end

  const auto bodies = collector.bodies();
  for (const auto& body : bodies) expect_hidden(body);
  keep_spans(bodies);
  EXPECT_EQ(value("SELECT string_agg(concat_ws(' ', failed, attributes ->> 'attempts', "
                  "attributes ->> 'reason_code'), ', ' ORDER BY attributes ->> 'attempts') "
                  "FROM spans WHERE name = 'outbox.process'"),
            "t 0 BROKER_DOWN, f 1");
  EXPECT_EQ(value("SELECT string_agg(concat_ws(' ', c.failed, c.attributes ->> 'adapter', "
                  "(c.attributes ->> 'rtt_ms')::float8 >= 0), ', ' ORDER BY p.attributes ->> 'attempts') "
                  "FROM spans p JOIN spans c ON c.parent = p.id "
                  "WHERE p.name = 'outbox.process' AND c.name = 'broker.send'"),
            "t paper t, f paper t");
  EXPECT_EQ(
      value(fmt::format("SELECT bool_and(s.attributes ->> 'idempotency_key_hash' = orders.key_hash('{}') "
                        "AND s.attributes ->> 'outbox_id' = o.id::text) "
                        "FROM spans s, orders.outbox_orders o WHERE s.name = 'outbox.process'",
                        kKey)),
      "t");
  EXPECT_EQ(
      value(fmt::format("SELECT string_agg(name, ', ' ORDER BY name) FROM spans WHERE trace = '{}'", kTrace)),
      "POST /do/order, broker.send, broker.send, outbox.process, outbox.process");
}

TEST_F(OrderObservability, EveryTryEndsInALogLineWithTheFieldsThatOperatorsSearchBy) {
  const auto worker = node({"TODOKE_BROKER_PAPER_FIRST=down"});
  ASSERT_EQ(post_in_trace(worker->public_url()), 201);
  await_status(kKey, "succeeded");
  worker->stop();

  const auto log = worker->process().err();
  expect_hidden(log);
  std::vector<std::string> told;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("\"msg\":\"order settled\"") == std::string::npos) continue;
    told.push_back(value(fmt::format(
        "SELECT concat_ws(' ', j ->> 'status', j ->> 'attempts', j ->> 'reason_code', j ->> 'adapter', "
        "(j ->> 'latency_ms')::int >= 0, j ->> 'idempotency_key' = orders.key_hash('{}'), "
        "j ->> 'outbox_id' = o.id::text) "
        "FROM (SELECT $line${}$line$::jsonb AS j) l, orders.outbox_orders o",
        kKey, line)));
  }
  EXPECT_THAT(told, testing::ElementsAre("failed 1 BROKER_DOWN paper t t t", "succeeded 1  paper t t t"));
}

}  // namespace
}  // namespace todoke::test

// POST /do/order: every status, and that what is refused leaves nothing behind.
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/bytes.hpp"
#include "orders/core/canonical.hpp"
#include "orders/core/order.hpp"
#include "orders_api/rig.hpp"

namespace todoke::test {
namespace {

constexpr const char* kCounts =
    "SELECT (SELECT count(*) FROM orders.outbox_orders), (SELECT count(*) FROM orders.idempo_ledger)";

TEST(OrderPost, AcceptsAnOrderIntoLedgerAndOutbox) {
  const OrdersRig rig;
  const auto body =
      order_body("key-0001", {{"price", "64250.50"}, {"tags", R"(["a"])"}, {"trace_id", R"("t-1")"}});
  const auto response = rig.post("key-0001", body);
  EXPECT_EQ(response.status, 201) << response.body;
  EXPECT_EQ(response.body,
            R"({"idempotency_key":"key-0001","status":"pending","attempts":0,"next_run_at":null,)"
            R"("last_error_code":null,"in_doubt":false,"http_status":null,"result":null})");
  EXPECT_EQ(response.header("Content-Type"), "application/json");
  EXPECT_EQ(response.header("Idempotent-Replayed"), "");
  const auto digest = orders::request_digest(*orders::parse_order(body));
  EXPECT_EQ(rig.value("SELECT status, attempts, request_digest, instrument, trace_id, claim_no, in_doubt "
                      "FROM orders.outbox_orders"),
            "pending|0|" + digest + "|BTC-USD|t-1|0|f");
  EXPECT_EQ(rig.value("SELECT status, request_digest, http_status, response_payload_json, expires_at "
                      "FROM orders.idempo_ledger WHERE idempotency_key = 'key-0001'"),
            "accepted|" + digest + "|||");
  EXPECT_EQ(rig.value("SELECT count(*) FROM orders.audit"), "0");
}

TEST(OrderPost, KeepsDecimalsExactFromEndToEnd) {
  const OrdersRig rig;
  const std::string qty = "99999999999999999999.999999999999999999";
  EXPECT_EQ(rig.post("key-0001", order_body("key-0001", {{"qty", qty}, {"price", "1e-18"}})).status, 201);
  EXPECT_EQ(
      rig.value(
          "SELECT order_request_json ->> 'qty', order_request_json ->> 'price' FROM orders.outbox_orders"),
      qty + "|0.000000000000000001");
  const auto order = orders::parse_order(rig.value("SELECT order_request_json FROM orders.outbox_orders"));
  ASSERT_TRUE(order);
  EXPECT_EQ(order->qty.text(), qty);
  EXPECT_EQ(rig.value("SELECT request_digest FROM orders.outbox_orders"), orders::request_digest(*order));
}

TEST(OrderPost, RepeatsTheAnswerToTheSameOrder) {
  const OrdersRig rig;
  ASSERT_EQ(rig.post("key-0001").status, 201);
  const auto spelled =
      order_body("key-0001", {{"qty", "5.0e-1"}, {"price", "null"}, {"trace_id", R"("other")"}});
  for (const auto& body : {order_body("key-0001"), spelled}) {
    const auto again = rig.post("key-0001", body);
    EXPECT_EQ(again.status, 200) << again.body;
    EXPECT_EQ(again.header("Idempotent-Replayed"), "true");
    EXPECT_EQ(member(again.body, "status"), "pending");
  }
  EXPECT_EQ(rig.value(kCounts), "1|1");
  EXPECT_EQ(rig.value("SELECT last_seen_at > first_seen_at FROM orders.idempo_ledger"), "t");
}

TEST(OrderPost, RepeatsTheStoredResultByteForByte) {
  const OrdersRig rig;
  ASSERT_EQ(rig.post("key-0001").status, 201);
  const std::string result = R"({"status":"error",  "reason_code":"BROKER_REJECTED","executed_qty":0.10})";
  rig.sql(
      "SET orders.actor = 'test'; UPDATE orders.idempo_ledger SET status = 'failed', http_status = 409, "
      "response_payload_json = '" +
      result +
      "'; UPDATE orders.outbox_orders SET status = 'aborted', attempts = 1, "
      "last_error_code = 'BROKER_REJECTED'");
  const auto again = rig.post("key-0001");
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(again.header("Idempotent-Replayed"), "true");
  EXPECT_EQ(again.body,
            R"({"idempotency_key":"key-0001","status":"aborted","attempts":1,"next_run_at":null,)"
            R"("last_error_code":"BROKER_REJECTED","in_doubt":false,"http_status":409,"result":)" +
                result + "}");
}

TEST(OrderPost, RefusesAnotherOrderUnderAKnownKey) {
  const OrdersRig rig;
  ASSERT_EQ(rig.post("key-0001").status, 201);
  const auto other = rig.post("key-0001", order_body("key-0001", {{"qty", "0.6"}}));
  EXPECT_EQ(code(other), "409 IDEMPOTENCY_CONFLICT");
  EXPECT_EQ(member(other.body, "details.field"), "idempotency_key");
  EXPECT_EQ(rig.value(kCounts), "1|1");
}

TEST(OrderPost, KnowsAKeyThatStandsInTheOutboxOnly) {
  const OrdersRig rig;
  const auto body = order_body("key-0001");
  rig.sql(
      fmt::format("INSERT INTO orders.outbox_orders (idempotency_key, order_request_json, request_digest) "
                  "VALUES ('key-0001', '{}', '{}')",
                  body, orders::request_digest(*orders::parse_order(body))));
  EXPECT_EQ(rig.post("key-0001").status, 200);
  EXPECT_EQ(code(rig.post("key-0001", order_body("key-0001", {{"qty", "9"}}))), "409 IDEMPOTENCY_CONFLICT");
  EXPECT_EQ(rig.value(kCounts), "1|0");
}

TEST(OrderPost, ShowsAnArchivedOrderAsLongAsTheLedgerKnowsIt) {
  const OrdersRig rig;
  ASSERT_EQ(rig.post("key-0001").status, 201);
  rig.sql(
      "SET orders.actor = 'test'; UPDATE orders.idempo_ledger SET status = 'succeeded', http_status = 200, "
      "response_payload_json = '{}'; "
      "INSERT INTO orders.outbox_orders_archive (id, idempotency_key, order_request_json, request_digest, "
      "status, "
      "attempts, created_at, updated_at, claim_no, in_doubt) SELECT id, idempotency_key, order_request_json, "
      "request_digest, 'succeeded', 2, created_at, updated_at, 3, in_doubt FROM orders.outbox_orders; "
      "DELETE FROM orders.outbox_orders");
  const auto again = rig.post("key-0001");
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(member(again.body, "status"), "succeeded");
  EXPECT_EQ(member(again.body, "attempts"), "2");
  rig.sql("SET orders.actor = 'test'; DELETE FROM orders.idempo_ledger");
  EXPECT_EQ(rig.post("key-0001").status, 201);
}

TEST(OrderPost, NeedsTheKeyInTheHeader) {
  const OrdersRig rig;
  const auto body = order_body("key-0001");
  EXPECT_EQ(code(rig.post("key-0002", body)), "422 IDEMPOTENCY_MISMATCH");
  EXPECT_EQ(code(rig.ask(net::test::post("/do/order", body, "Content-Type: application/json\r\n"))),
            "422 IDEMPOTENCY_MISMATCH");
  EXPECT_EQ(code(rig.post("key-0001", body, "Idempotency-Key: key-0001\r\n")), "422 IDEMPOTENCY_MISMATCH");
  EXPECT_EQ(rig.value(kCounts), "0|0");
}

TEST(OrderPost, RefusesOtherMethodsMediaTypesAndSizes) {
  const OrdersRig rig(Flags{{"orders.body_bytes_max", "1KiB"}});
  EXPECT_EQ(code(rig.get("/do/order")), "405 METHOD_NOT_ALLOWED");
  EXPECT_EQ(rig.ask("DELETE /do/order/key-0001 HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 405);
  const auto body = order_body("key-0001");
  EXPECT_EQ(
      rig.ask(net::test::post("/do/order", body, "Content-Type: text/plain\r\nIdempotency-Key: key-0001\r\n"))
          .status,
      415);
  EXPECT_EQ(rig.ask(net::test::post("/do/order", body, "Idempotency-Key: key-0001\r\n")).status, 415);
  EXPECT_EQ(rig.post("key-0001", body, "Content-Encoding: gzip\r\n").status, 415);
  EXPECT_EQ(rig.post("key-0001", body, "Content-Type: text/plain\r\n").status, 400) << "a second one";
  EXPECT_EQ(rig.post("key-0001", body + std::string(1'024, ' ')).status, 413);
  EXPECT_EQ(rig.value(kCounts), "0|0");
  EXPECT_EQ(rig.ask(net::test::post(
                        "/do/order", body,
                        "Content-Type: application/json; charset=utf-8\r\nIdempotency-Key: key-0001\r\n"))
                .status,
            201);
}

TEST(OrderPost, AsksForATokenWhenTheyAreOn) {
  const auto path = testing::TempDir() + "todoke_tokens_" + random_hex(8);
  std::ofstream(path) << "# desk\ndesk-7 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n";
  OrdersRig rig(Flags{{"orders.tokens_file", path}});
  const auto body = order_body("key-0001");
  const auto none = rig.post("key-0001", body);
  EXPECT_EQ(code(none), "401 UNAUTHORIZED");
  EXPECT_EQ(none.header("WWW-Authenticate"), "Bearer");
  EXPECT_EQ(rig.post("key-0001", body, "Authorization: Bearer wrong\r\n").status, 401);
  EXPECT_EQ(rig.post("key-0001", body, "Authorization: Basic test\r\n").status, 401);
  EXPECT_EQ(rig.get("/do/order/key-0001").status, 401);
  EXPECT_EQ(rig.post("key-0001", body, "Authorization: Bearer test\r\n").status, 201);
  EXPECT_EQ(rig.get("/do/order/key-0001", "Authorization: bearer test\r\n").status, 200);

  std::ofstream(path) << "another-token-of-the-desk\n";
  rig.reread_files();
  EXPECT_EQ(rig.get("/do/order/key-0001", "Authorization: Bearer test\r\n").status, 401);
  EXPECT_EQ(rig.get("/do/order/key-0001", "Authorization: Bearer another-token-of-the-desk\r\n").status, 200);

  std::ofstream(path) << "too-short\n";
  rig.reread_files();
  EXPECT_EQ(rig.get("/do/order/key-0001", "Authorization: Bearer another-token-of-the-desk\r\n").status, 200);
  std::filesystem::remove(path);
}

TEST(OrderPost, BoundsTheRateOfAClient) {
  const OrdersRig rig(Flags{{"orders.rate_per_minute", "2"}, {"limits.rates", "on"}});
  EXPECT_EQ(rig.post("key-0001").status, 201);
  EXPECT_EQ(rig.post("key-0002").status, 201);
  const auto third = rig.post("key-0003");
  EXPECT_EQ(code(third), "429 RATE_LIMITED");
  const auto after = std::stoi(third.header("Retry-After"));
  EXPECT_GE(after, 1);
  EXPECT_LE(after, 30);
  EXPECT_EQ(rig.value(kCounts), "2|2");
}

TEST(OrderPost, ChecksInstrumentsAndLotSteps) {
  const OrdersRig rig(Flags{{"orders.instruments", "BTC-USD,USDJPY"}, {"orders.lot_steps", "USDJPY=1000"}});
  EXPECT_EQ(rig.post("key-0001").status, 201);
  const auto unknown = rig.post("key-0002", order_body("key-0002", {{"instrument", R"("ETH-USD")"}}));
  EXPECT_EQ(code(unknown), "422 VALIDATION_ERROR");
  EXPECT_EQ(member(unknown.body, "details.field"), "instrument");
  const auto odd =
      rig.post("key-0002", order_body("key-0002", {{"instrument", R"("USDJPY")"}, {"qty", "1500"}}));
  EXPECT_EQ(code(odd), "422 VALIDATION_ERROR");
  EXPECT_EQ(member(odd.body, "details.field"), "qty");
  EXPECT_EQ(
      rig.post("key-0002", order_body("key-0002", {{"instrument", R"("USDJPY")"}, {"qty", "2e3"}})).status,
      201);
}

TEST(OrderPost, HoldsToItsLimitsBeforeAnythingIsWritten) {
  const OrdersRig rig(Flags{{"orders.limits.qty_max", "BTC-USD=1"}, {"orders.limits.notional_max", "*=100"}});
  const auto large = rig.post("key-0001", order_body("key-0001", {{"qty", "1.1"}}));
  EXPECT_EQ(code(large), "422 LIMIT_EXCEEDED");
  EXPECT_EQ(member(large.body, "details.field"), "orders.limits.qty_max");
  const auto dear = rig.post("key-0001", order_body("key-0001", {{"qty", "1"}, {"price", "100.01"}}));
  EXPECT_EQ(code(dear), "422 LIMIT_EXCEEDED");
  EXPECT_EQ(member(dear.body, "details.field"), "orders.limits.notional_max");
  EXPECT_EQ(rig.value(kCounts), "0|0");
  EXPECT_EQ(rig.post("key-0001", order_body("key-0001", {{"qty", "1"}, {"price", "100"}})).status, 201);
}

TEST(OrderPost, BoundsOrdersInASecondButRepeatsAnswers) {
  const OrdersRig rig(Flags{{"orders.limits.per_second", "1"}});
  ASSERT_EQ(rig.post("key-0001").status, 201);
  RawResponse refused;
  ASSERT_TRUE(await([&, i = 1]() mutable {
    const auto key = fmt::format("key-1{:03}", i++);
    refused = rig.post(key);
    return refused.status == 422;
  }));
  EXPECT_EQ(code(refused), "422 LIMIT_EXCEEDED");
  EXPECT_EQ(member(refused.body, "details.field"), "orders.limits.per_second");
  EXPECT_EQ(refused.header("Retry-After"), "1");
  EXPECT_EQ(rig.post("key-0001").status, 200);
}

TEST(OrderPost, PostsThatAreRepeatedDontUseUpTheOrdersOfASecond) {
  const OrdersRig rig(Flags{{"orders.limits.per_second", "3"}});
  ASSERT_EQ(rig.post("key-0001").status, 201);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(rig.post("key-0001").status, 200);
  EXPECT_EQ(rig.post("key-0001", order_body("key-0001", {{"qty", "9"}})).status, 409);
  EXPECT_EQ(rig.post("key-0002").status, 201);
  EXPECT_EQ(rig.post("key-0003").status, 201);
}

TEST(OrderPost, TakesNothingWhileTooManyOrdersAreInDoubt) {
  const OrdersRig rig(Flags{{"orders.limits.in_doubt_max", "1"}});
  ASSERT_EQ(rig.post("key-0001").status, 201);
  rig.sql("SET orders.actor = 'test'; UPDATE orders.outbox_orders SET in_doubt = true");
  RawResponse refused;
  ASSERT_TRUE(await([&, i = 1]() mutable {
    refused = rig.post(fmt::format("key-1{:03}", i++));
    return refused.status == 422;
  }));
  EXPECT_EQ(member(refused.body, "details.field"), "orders.limits.in_doubt_max");
  EXPECT_EQ(rig.post("key-0001").status, 200);
  rig.sql("SET orders.actor = 'test'; UPDATE orders.outbox_orders SET status = 'aborted' WHERE in_doubt");
  EXPECT_TRUE(await([&] { return rig.post("key-0002").status == 201; }));
}

TEST(OrderPost, RefusesNewOrdersWhileTheIntakeIsHalted) {
  const OrdersRig rig;
  ASSERT_EQ(rig.post("key-0001").status, 201);
  rig.sql(
      "INSERT INTO orders.halts (instrument, intake_refused, halted_by) VALUES ('BTC-USD', true, 'test')");
  RawResponse refused;
  ASSERT_TRUE(await([&, i = 1]() mutable {
    refused = rig.post(fmt::format("key-1{:03}", i++));
    return refused.status == 503;
  }));
  EXPECT_EQ(code(refused), "503 HALTED");
  EXPECT_EQ(refused.header("Retry-After"), "10");
  EXPECT_EQ(rig.post("key-0001").status, 200) << "what was accepted stays accepted";
  EXPECT_EQ(code(rig.post("key-0001", order_body("key-0001", {{"qty", "9"}}))), "409 IDEMPOTENCY_CONFLICT");
  EXPECT_EQ(rig.post("key-0003", order_body("key-0003", {{"instrument", R"("ETH-USD")"}})).status, 201);
  rig.sql("UPDATE orders.halts SET intake_refused = false");
  EXPECT_TRUE(await([&] { return rig.post("key-0004").status == 201; }))
      << "a halt of sending does not stop the intake";
  rig.sql("INSERT INTO orders.halts (adapter, intake_refused, halted_by) VALUES ('fix', true, 'test')");
  EXPECT_EQ(rig.post("key-0005").status, 201);
}

TEST(OrderPost, WakesTheWorkers) {
  const OrdersRig rig;
  SqlSession worker(rig.database_url());
  worker.run("LISTEN orders_pending");
  ASSERT_EQ(rig.post("key-0001").status, 201);
  EXPECT_EQ(worker.notification(), "orders_pending");
}

TEST(OrderPost, CountsWhatItTells) {
  const OrdersRig rig;
  EXPECT_EQ(rig.post("key-0001").status, 201);
  EXPECT_EQ(rig.post("key-0001").status, 200);
  EXPECT_EQ(rig.post("key-0001", "{}").status, 422);
  EXPECT_EQ(rig.metric("todoke_orders_posts_total{outcome=\"accepted\"}"), 1);
  EXPECT_EQ(rig.metric("todoke_orders_posts_total{outcome=\"replayed\"}"), 1);
  EXPECT_EQ(rig.metric("todoke_orders_posts_total{outcome=\"VALIDATION_ERROR\"}"), 1);
}

}  // namespace
}  // namespace todoke::test

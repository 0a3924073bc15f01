// GET /do/order/{key}, and waiting for an order to be settled.
#include <chrono>
#include <future>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "orders_api/rig.hpp"

namespace todoke::test {
namespace {

constexpr const char* kWaiting = "todoke_orders_waiting";

void settle(const OrdersRig& rig) {
  rig.sql(
      "SET orders.actor = 'test'; UPDATE orders.idempo_ledger SET status = 'succeeded', http_status = 200, "
      "response_payload_json = '{\"status\":\"ok\"}'; UPDATE orders.outbox_orders SET status = 'succeeded'");
}

TEST(OrderGet, ShowsTheStateOfAnOrder) {
  const OrdersRig rig;
  ASSERT_EQ(rig.post("key-0001").status, 201);
  EXPECT_EQ(rig.get("/do/order/key-0001").body,
            R"({"idempotency_key":"key-0001","status":"pending","attempts":0,"next_run_at":null,)"
            R"("last_error_code":null,"in_doubt":false,"http_status":null,"result":null})");
  rig.sql(
      "SET orders.actor = 'test'; UPDATE orders.outbox_orders SET status = 'failed', attempts = 2, in_doubt "
      "= true, "
      "last_error_code = 'BROKER_TIMEOUT', next_run_at = '2099-01-02 03:04:05.678+00'");
  const auto response = rig.get("/do/order/key-0001");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.header("Idempotent-Replayed"), "");
  EXPECT_EQ(
      response.body,
      R"({"idempotency_key":"key-0001","status":"failed","attempts":2,"next_run_at":"2099-01-02T03:04:05.678000Z",)"
      R"("last_error_code":"BROKER_TIMEOUT","in_doubt":true,"http_status":null,"result":null})");
}

TEST(OrderGet, DecodesTheKeyInThePath) {
  const OrdersRig rig;
  const std::string key = R"(a/b%c?d#e~!{})";
  ASSERT_EQ(rig.post(key, order_body(key)).status, 201);
  EXPECT_EQ(member(rig.get("/do/order/a%2Fb%25c%3Fd%23e~!%7B%7D").body, "idempotency_key"), key);
}

TEST(OrderGet, KnowsNothingOfOtherKeys) {
  const OrdersRig rig;
  for (const auto* key :
       {"key-0001", "short", "with%20space", "%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9"}) {
    const auto response = rig.get(fmt::format("/do/order/{}", key));
    EXPECT_EQ(response.status, 404) << key;
    EXPECT_EQ(member(response.body, "code"), "NOT_FOUND");
  }
  EXPECT_EQ(rig.get("/do/order/key-0001?wait=1s").status, 404);
}

TEST(OrderGet, RefusesAWaitThatCantBeRead) {
  const OrdersRig rig;
  ASSERT_EQ(rig.post("key-0001").status, 201);
  for (const auto* wait : {"soon", "-1s", "5x", ""}) {
    const auto response = rig.get(fmt::format("/do/order/key-0001?wait={}", wait));
    EXPECT_EQ(response.status, 422) << wait;
    EXPECT_EQ(member(response.body, "code"), "VALIDATION_ERROR");
    EXPECT_EQ(member(response.body, "details.field"), "wait");
  }
  for (const auto* wait : {"0", "1ms", "0s"}) {
    EXPECT_EQ(rig.get(fmt::format("/do/order/key-0001?wait={}", wait)).status, 200) << wait;
  }
}

TEST(OrderGet, WaitsUntilTheOrderIsSettled) {
  const OrdersRig rig;
  ASSERT_EQ(rig.post("key-0001").status, 201);
  std::vector<std::future<RawResponse>> waiting;
  for (int i = 0; i < 3; ++i) {
    waiting.push_back(std::async(std::launch::async, [&] { return rig.get("/do/order/key-0001?wait=1h"); }));
  }
  ASSERT_TRUE(await([&] { return rig.metric(kWaiting) == 3; }));
  rig.sql("SET orders.actor = 'test'; UPDATE orders.outbox_orders SET status = 'sending', claim_no = 1");
  settle(rig);
  for (auto& each : waiting) {
    const auto response = each.get();
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(member(response.body, "status"), "succeeded");
    EXPECT_EQ(member(response.body, "result.status"), "ok");
  }
  EXPECT_TRUE(await([&] { return rig.metric(kWaiting) == 0; }));
}

TEST(OrderGet, WhatIsSettledHereIsToldToThoseWhoWaitElsewhere) {
  const OrdersRig rig(Flags{{"outbox.enabled", "true"}});
  SqlSession elsewhere(rig.database_url());
  elsewhere.run("LISTEN orders_settled");
  ASSERT_EQ(rig.post("key-0001").status, 201);
  EXPECT_EQ(elsewhere.notification(), "orders_settled");
  EXPECT_EQ(member(rig.get("/do/order/key-0001").body, "status"), "succeeded");
}

TEST(OrderGet, AnswersWithTheStateThatThereIsWhenTheWaitIsOver) {
  const OrdersRig rig;
  ASSERT_EQ(rig.post("key-0001").status, 201);
  const auto response = rig.get("/do/order/key-0001?wait=20ms");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(member(response.body, "status"), "pending");
  EXPECT_EQ(rig.metric(kWaiting), 0);
}

TEST(OrderGet, DoesNotWaitWhenTooManyDo) {
  const OrdersRig rig(Flags{{"orders.waiters_max", "1"}});
  ASSERT_EQ(rig.post("key-0001").status, 201);
  auto first = std::async(std::launch::async, [&] { return rig.get("/do/order/key-0001?wait=30s"); });
  ASSERT_TRUE(await([&] { return rig.metric(kWaiting) == 1; }));
  EXPECT_EQ(member(rig.get("/do/order/key-0001?wait=30s").body, "status"), "pending");
  EXPECT_EQ(first.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  settle(rig);
  EXPECT_EQ(member(first.get().body, "status"), "succeeded");
}

TEST(OrderGet, AnswersThoseWhoWaitWhenTheNodeStops) {
  OrdersRig rig;
  ASSERT_EQ(rig.post("key-0001").status, 201);
  auto waiting = std::async(std::launch::async, [port = rig.port()] {
    net::test::RawClient client(port);
    return client.ask(net::test::get("/do/order/key-0001?wait=30s"));
  });
  ASSERT_TRUE(await([&] { return rig.metric(kWaiting) == 1; }));
  rig.stop();
  EXPECT_EQ(member(waiting.get().body, "status"), "pending");
}

}  // namespace
}  // namespace todoke::test

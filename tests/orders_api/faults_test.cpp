// The database goes away: what clients are told is true.
#include <future>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "orders_api/rig.hpp"

namespace todoke::test {
namespace {

// What a batch of the intake holds, whether its statement is prepared already or not.
constexpr const char* kAccept = "accept_orders";
constexpr const char* kCount = "SELECT count(*) FROM orders.idempo_ledger";

std::future<RawResponse> post_later(const OrdersRig& rig, const std::string& key) {
  return std::async(std::launch::async, [&rig, key] { return rig.post(key); });
}

TEST(OrderFaults, TakesNothingWhileTheDatabaseIsAwayAndGoesOnAfterwards) {
  OrdersRig rig(Flags{{"orders.accept_timeout", "2s"}});
  ASSERT_EQ(rig.post("key-0001").status, 201);
  rig.proxy().set_reachable(false);
  const auto refused = rig.post("key-0002");
  EXPECT_EQ(code(refused), "503 UNAVAILABLE");
  EXPECT_EQ(refused.header("Retry-After"), "1");
  const auto unread = rig.get("/do/order/key-0001");
  EXPECT_EQ(code(unread), "503 UNAVAILABLE");
  EXPECT_EQ(rig.value(kCount), "1");
  rig.proxy().set_reachable(true);
  EXPECT_TRUE(await([&] { return rig.post("key-0002").status != 503; }));
  EXPECT_EQ(rig.post("key-0002").status, 200);
  EXPECT_EQ(rig.value(kCount), "2");
}

TEST(OrderFaults, SurvivesItsSessionBeingKilled) {
  const OrdersRig rig;
  ASSERT_EQ(rig.post("key-0001").status, 201);
  rig.sql(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
      "AND pid <> pg_backend_pid()");
  EXPECT_EQ(rig.post("key-0002").status, 201);
  EXPECT_EQ(rig.post("key-0001").status, 200);
}

TEST(OrderFaults, LooksAgainWhenTheAnswerToTheCommitIsLost) {
  OrdersRig rig;
  for (const auto* key : {"key-0001", "key-0002"}) {  // the first prepares the statement, the second has it
    rig.proxy().hold_answers_after(kAccept);
    auto answer = post_later(rig, key);
    rig.proxy().await_held();
    ASSERT_TRUE(await([&] {
      return rig.value(fmt::format("SELECT count(*) FROM orders.idempo_ledger WHERE idempotency_key = '{}'",
                                   key)) == "1";
    }));
    rig.proxy().cut();
    EXPECT_EQ(answer.get().status, 201);
    EXPECT_EQ(rig.post(key).status, 200);
  }
  EXPECT_EQ(rig.value(kCount), "2");
}

TEST(OrderFaults, SaysThatTheOutcomeIsUnknownWhenItCantLookAgain) {
  OrdersRig rig(Flags{{"orders.accept_timeout", "3s"}});
  rig.proxy().hold_answers_after(kAccept);
  auto answer = post_later(rig, "key-0001");
  rig.proxy().await_held();
  ASSERT_TRUE(await([&] { return rig.value(kCount) == "1"; }));
  rig.proxy().set_reachable(false);
  const auto unknown = answer.get();
  EXPECT_EQ(code(unknown), "503 OUTCOME_UNKNOWN");
  EXPECT_EQ(unknown.header("Retry-After"), "1");
  rig.proxy().set_reachable(true);
  EXPECT_TRUE(await([&] { return rig.post("key-0001").status != 503; }));
  EXPECT_EQ(rig.post("key-0001").status, 200);
  EXPECT_EQ(rig.value(kCount), "1");
}

TEST(OrderFaults, AnAnswerThatNeverComesEndsInTheTruthToo) {
  OrdersRig rig(Flags{{"orders.accept_timeout", "3s"}});
  rig.proxy().hold_answers_after(kAccept);
  const auto answer = rig.post("key-0001");
  // The connection hangs: its commit is given up, and a new connection finds the order.
  EXPECT_TRUE(answer.status == 201 || code(answer) == "503 OUTCOME_UNKNOWN") << answer.body;
  EXPECT_TRUE(await([&] { return rig.post("key-0001").status == 200; }));
  EXPECT_EQ(rig.value(kCount), "1");
}

TEST(OrderFaults, AnOrderThatTheDatabaseRefusesFailsAlone) {
  const OrdersRig rig;
  rig.sql("ALTER TABLE orders.outbox_orders ADD CHECK (instrument <> 'BAD')");
  std::vector<std::future<RawResponse>> answers;
  for (int i = 0; i < 16; ++i) {
    answers.push_back(std::async(std::launch::async, [&rig, i] {
      const auto key = fmt::format("key-{:04}", i);
      return rig.post(key, order_body(key, {{"instrument", i == 7 ? "\"BAD\"" : "\"GOOD\""}}));
    }));
  }
  for (std::size_t i = 0; i < answers.size(); ++i)
    EXPECT_EQ(answers[i].get().status, i == 7 ? 500 : 201) << i;
  EXPECT_EQ(rig.value(kCount), "15");
}

TEST(OrderFaults, WithoutRoomOnTheDiskNothingIsAccepted) {
  OrdersRig rig;
  ASSERT_EQ(rig.post("key-0001").status, 201);
  rig.leave_free(1);
  ASSERT_TRUE(rig.await_metric("todoke_storage_full", 1));
  const auto refused = rig.post("key-0002");
  EXPECT_EQ(code(refused), "503 STORAGE_FULL");
  EXPECT_EQ(refused.header("Retry-After"), "30");
  EXPECT_EQ(rig.post("key-0001").status, 200) << "what was accepted stays accepted";
  EXPECT_EQ(rig.get("/do/order/key-0001").status, 200);
  EXPECT_EQ(rig.value(kCount), "1");
  rig.leave_free(1ULL << 40);
  ASSERT_TRUE(rig.await_metric("todoke_storage_full", 0));
  EXPECT_EQ(rig.post("key-0002").status, 201);
}

TEST(OrderFaults, ADatabaseThatRefusesForWantOfRoomAcceptsNothingUntilItHasRoom) {
  OrdersRig rig;
  rig.sql(R"(CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$;
             CREATE TRIGGER refuse BEFORE INSERT ON orders.outbox_orders
             FOR EACH STATEMENT EXECUTE FUNCTION refuse())");
  const auto refused = rig.post("key-0001");
  EXPECT_EQ(code(refused), "503 UNAVAILABLE");
  ASSERT_TRUE(rig.await_metric("todoke_storage_full", 1));
  EXPECT_EQ(code(rig.post("key-0001")), "503 STORAGE_FULL");
  rig.sql("DROP TRIGGER refuse ON orders.outbox_orders");
  rig.clock().shift_steady(std::chrono::seconds(10));
  ASSERT_TRUE(rig.await_metric("todoke_storage_full", 0));
  EXPECT_EQ(rig.post("key-0001").status, 201);
  EXPECT_EQ(rig.value(kCount), "1");
}

}  // namespace
}  // namespace todoke::test

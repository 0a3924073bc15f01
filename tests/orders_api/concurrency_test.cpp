// Many posts at the same moment.
#include <barrier>
#include <future>
#include <set>

#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "harness/run_task.hpp"
#include "orders/intake/intake.hpp"
#include "orders_api/rig.hpp"

namespace todoke::test {
namespace {

// Posts all at once, each over a connection that is open already.
std::vector<RawResponse> post_together(const OrdersRig& rig,
                                       const std::vector<std::pair<std::string, std::string>>& posts) {
  std::barrier ready(static_cast<std::ptrdiff_t>(posts.size()));
  std::vector<std::future<RawResponse>> answers;
  for (const auto& post : posts) {
    answers.push_back(std::async(std::launch::async, [&rig, &ready, &post] {
      net::test::RawClient client(rig.port());
      const auto headers =
          fmt::format("Content-Type: application/json\r\nIdempotency-Key: {}\r\n", post.first);
      ready.arrive_and_wait();
      return client.ask(net::test::post("/do/order", post.second, headers));
    }));
  }
  std::vector<RawResponse> all;
  for (auto& answer : answers) all.push_back(answer.get());
  return all;
}

Task<void> offer(orders::Intake& intake, std::string key, int& left) {
  orders::Offer one{key, "digest", "{}", std::nullopt};
  const auto outcome = co_await intake.submit(std::move(one));
  EXPECT_EQ(outcome.verdict, orders::IntakeVerdict::accepted);
  if (--left == 0) intake.stop();
}

TEST(OrderConcurrency, OrdersOfOneTransactionAreNumberedInTheOrderOfTheirArrival) {
  const TestDatabase database;
  run_task([&]() -> Task<void> {
    const auto executor = co_await asio::this_coro::executor;
    metrics::Registry registry;
    orders::IntakeOptions options;
    options.connect.url = database.url();
    const SystemClock clock;
    pg::Storage storage;
    orders::Intake intake(executor, options, clock, storage, registry);
    co_await intake.start();
    int left = 3;
    for (const auto* key : {"key-0003", "key-0001", "key-0002"}) {
      spawn(executor, offer(intake, key, left),
            [](const std::exception_ptr& failure) { EXPECT_FALSE(failure); });
    }
    co_await intake.run();
    const auto connection = co_await database.connect();
    constexpr pg::Statement kOrders{
        "numbered",
        "SELECT count(DISTINCT created_at), string_agg(idempotency_key, ',' ORDER BY id)"
        " FROM orders.outbox_orders"};
    const auto rows = co_await connection->query(kOrders, {}, Deadline::after(std::chrono::seconds(10)));
    EXPECT_EQ(rows.one().get<std::int64_t>(0), 1) << "one transaction";
    EXPECT_EQ(rows.one().get<std::string>(1), "key-0003,key-0001,key-0002");
  });
}

TEST(OrderConcurrency, OfTwentyPostsOfOneKeyWithTwoBodiesOneIsAccepted) {
  const OrdersRig rig;
  constexpr int kRounds = 10;
  constexpr std::size_t kPosts = 20;
  for (int round = 0; round < kRounds; ++round) {
    const auto key = fmt::format("key-{:04}", round);
    std::vector<std::pair<std::string, std::string>> posts;
    for (std::size_t i = 0; i < kPosts; ++i)
      posts.emplace_back(key, order_body(key, {{"qty", i % 2 == 0 ? "1" : "2"}}));
    const auto answers = post_together(rig, posts);
    const auto qty = rig.value(fmt::format(
        "SELECT order_request_json ->> 'qty' FROM orders.outbox_orders WHERE idempotency_key = '{}'", key));
    int accepted = 0;
    for (std::size_t i = 0; i < kPosts; ++i) {
      const bool winner = (i % 2 == 0 ? "1" : "2") == qty;
      if (answers[i].status == 201) ++accepted;
      if (winner) {
        EXPECT_TRUE(answers[i].status == 201 || answers[i].status == 200) << answers[i].body;
      } else {
        EXPECT_EQ(answers[i].status, 409) << answers[i].body;
      }
    }
    EXPECT_EQ(accepted, 1);
  }
  EXPECT_EQ(rig.value("SELECT count(*) FROM orders.idempo_ledger"), std::to_string(kRounds));
}

TEST(OrderConcurrency, TwoNodesAcceptOneKeyOnce) {
  const OrdersRig rig;
  const OrdersRig other(Flags{}, rig.database());
  constexpr int kKeys = 20;
  std::vector<std::future<int>> answers;
  for (int i = 0; i < kKeys; ++i) {
    const auto key = fmt::format("key-{:04}", i);
    for (const auto* node : {&rig, &other}) {
      answers.push_back(std::async(std::launch::async, [node, key] { return node->post(key).status; }));
    }
  }
  for (std::size_t i = 0; i < answers.size(); i += 2) {
    const auto first = answers[i].get();
    const auto second = answers[i + 1].get();
    EXPECT_EQ((std::multiset<int>{first, second}), (std::multiset<int>{200, 201}));
  }
  EXPECT_EQ(rig.value("SELECT count(*) FROM orders.outbox_orders"), std::to_string(kKeys));
}

TEST(OrderConcurrency, PostsThatComeTogetherShareTransactions) {
  const OrdersRig rig(Flags{{"orders.accept_timeout", "60s"}});
  constexpr int kPosts = 64;
  // Holds the first one up, so that the others gather behind it.
  SqlSession holder(rig.database_url());
  holder.run("BEGIN; LOCK TABLE orders.idempo_ledger IN SHARE MODE");
  auto first = std::async(std::launch::async, [&rig] { return rig.post("key-first").status; });
  ASSERT_TRUE(await([&] {
    return rig.value(
               "SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database AND d.datname = "
               "current_database() WHERE NOT granted") == "1";
  }));
  std::vector<std::pair<std::string, std::string>> posts;
  for (int i = 0; i < kPosts; ++i) {
    const auto key = fmt::format("key-{:04}", i);
    posts.emplace_back(key, order_body(key));
  }
  auto rest = std::async(std::launch::async, [&] { return post_together(rig, posts); });
  EXPECT_TRUE(await([&] { return rig.metric("todoke_orders_intake_queued") == kPosts; }));
  holder.run("COMMIT");
  EXPECT_EQ(first.get(), 201);
  for (const auto& answer : rest.get()) EXPECT_EQ(answer.status, 201) << answer.body;
  EXPECT_EQ(rig.metric("todoke_orders_intake_batch_orders_count"), 2);
  EXPECT_EQ(rig.value("SELECT count(*) FROM orders.idempo_ledger WHERE status = 'accepted'"),
            std::to_string(kPosts + 1));
}

}  // namespace
}  // namespace todoke::test

// The API of a node as clients see it, to the end of an order and over the end of the node.
#include <csignal>
#include <fstream>
#include <future>

#include <fmt/format.h>

#include "harness/pg_proxy.hpp"
#include "rig.hpp"

namespace todoke::test {
namespace {

using testing::HasSubstr;

std::string body_of(const std::string& key, const std::string& qty) {
  return fmt::format(
      R"({{"instrument":"BTC-USD","side":"BUY","qty":{},"price":64250.5,"idempotency_key":"{}"}})", qty, key);
}

// Status and body; status 0 when no answer came.
HttpAnswer post(const std::string& url, const std::string& key, const std::string& qty = "0.5",
                const std::string& token = "none") {
  const auto exit = run_command({"curl", "-s", "-w", "\n%{http_code}", "-H", "Content-Type: application/json",
                                 "-H", "Idempotency-Key: " + key, "-H", "Authorization: Bearer " + token,
                                 "-d", body_of(key, qty), url + "/do/order"});
  const auto last = exit.out.rfind('\n');
  return {std::stoi(exit.out.substr(last + 1)), exit.out.substr(0, last)};
}

TEST_F(OrdersTest, APostedOrderIsExecutedOnceWithItsExactAmounts) {
  const auto node_ = node();
  const auto url = node_->public_url();
  EXPECT_EQ(post(url, "exact-key-1", "1.000000000000000001").status, 201);
  const auto settled = http_get(url + "/do/order/exact-key-1?wait=30s");
  EXPECT_THAT(settled.body, HasSubstr(R"("status":"succeeded")"));
  EXPECT_THAT(settled.body, HasSubstr(R"("executed_qty":1.000000000000000001)"));
  EXPECT_THAT(settled.body, HasSubstr(R"("idempotency_key":"exact-key-1")"));
  const auto again = post(url, "exact-key-1", "1.0000000000000000010");
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(again.body, settled.body);
  EXPECT_EQ(post(url, "exact-key-1", "1").status, 409);
  EXPECT_EQ(value("SELECT count(*) FROM orders.sends"), "1");
}

TEST_F(OrdersTest, TwentyPostsOfOneKeyWithTwoBodiesAreOneExecution) {
  const auto node_ = node();
  const auto url = node_->public_url();
  std::vector<std::future<HttpAnswer>> answers;
  for (int i = 0; i < 20; ++i) {
    answers.push_back(std::async(std::launch::async,
                                 [&url, i] { return post(url, "twenty-key", i % 2 == 0 ? "1" : "2"); }));
  }
  int accepted = 0;
  int replayed = 0;
  int conflicts = 0;
  for (auto& answer : answers) {
    const auto status = answer.get().status;
    accepted += status == 201 ? 1 : 0;
    replayed += status == 200 ? 1 : 0;
    conflicts += status == 409 ? 1 : 0;
  }
  EXPECT_EQ(accepted, 1);
  EXPECT_EQ(replayed, 9);
  EXPECT_EQ(conflicts, 10);
  await_status("twenty-key", "succeeded");
  EXPECT_EQ(value("SELECT count(*) FROM orders.sends"), "1");
}

TEST_F(OrdersTest, ANodeKilledBetweenCommitAndAnswerHasAccepted) {
  PgProxy proxy(test_database.socket_folder());
  const auto through = fmt::format("host={} user=postgres dbname={}", proxy.folder(), test_database.name());
  {
    OrderNode doomed(through, {"OUTBOX_ENABLED=false"});
    const auto url = doomed.public_url();
    proxy.hold_answers_after("accept_orders");
    auto lost = std::async(std::launch::async, [&url] { return post(url, "killed-key"); });
    proxy.await_held();
    await("SELECT count(*) FROM orders.idempo_ledger", "1");
    doomed.process().kill(SIGKILL);
    EXPECT_EQ(lost.get().status, 0);
  }
  const auto node_ = node();
  EXPECT_EQ(post(node_->public_url(), "killed-key").status, 200);
  await_status("killed-key", "succeeded");
  EXPECT_EQ(value("SELECT count(*) FROM orders.sends"), "1");
}

TEST_F(OrdersTest, TokensAreReadAgainOnSighup) {
  const TempFolder folder;
  const auto path = folder.path() / "tokens";
  std::ofstream(path) << "first-token-of-the-desk\n";
  const auto node_ = node({"TODOKE_ORDERS_TOKENS_FILE=" + path.string()});
  const auto url = node_->public_url();
  EXPECT_EQ(post(url, "token-key-1").status, 401);
  EXPECT_EQ(post(url, "token-key-1", "1", "first-token-of-the-desk").status, 201);
  std::ofstream(path) << "second-token-of-the-desk\n";
  node_->process().kill(SIGHUP);
  wait_until("the new token to be known",
             [&] { return post(url, "token-key-1", "1", "second-token-of-the-desk").status == 200; });
  EXPECT_EQ(post(url, "token-key-1", "1", "first-token-of-the-desk").status, 401);
  await_status("token-key-1", "succeeded");
  // Emptied: nobody.
  std::ofstream(path) << "";
  node_->process().kill(SIGHUP);
  wait_until("the token to be taken back",
             [&] { return post(url, "token-key-1", "1", "second-token-of-the-desk").status == 401; });
  EXPECT_EQ(post(url, "token-key-1").status, 401);
}

TEST_F(OrdersTest, AWaitingRequestDoesNotHoldUpTheEndOfANode) {
  const auto node_ = node({"OUTBOX_ENABLED=false"});
  const auto url = node_->public_url();
  ASSERT_EQ(post(url, "waiting-key").status, 201);
  auto waiting =
      std::async(std::launch::async, [&url] { return http_get(url + "/do/order/waiting-key?wait=30s"); });
  node_->wait_for_metric("todoke_orders_waiting", 1);
  const auto exit = node_->stop();
  EXPECT_EQ(exit.code, 0);
  EXPECT_THAT(exit.err, testing::Not(HasSubstr("took too long")));
  EXPECT_THAT(waiting.get().body, HasSubstr(R"("status":"pending")"));
}

}  // namespace
}  // namespace todoke::test

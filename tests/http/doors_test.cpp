// Who comes in: what connections cost that say nothing or are too many, and what a request costs its client.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "handlers.hpp"
#include "harness/hostile_client.hpp"
#include "harness/http_rig.hpp"

namespace todoke::net::test {
namespace {

using namespace std::chrono_literals;
using todoke::test::HostileClient;

struct HttpDoors : testing::Test {
  Rig rig;
  std::promise<void> may_go_on;
  std::promise<void> stands_still;

  HttpDoors() {
    rig.router->add("GET", "/hello", echo);
    // Holds up the only worker's thread.
    rig.router->add("GET", "/block", [this](Request&) -> Task<Response> {
      stands_still.set_value();
      may_go_on.get_future().wait();
      co_return text_response(200, "");
    });
  }
  static std::string refused(std::string_view why) {
    return "todoke_http_connections_refused_total{listener=\"public\",reason=\"" + std::string(why) + "\"}";
  }
  static constexpr const char* kOpen = "todoke_http_connections{listener=\"public\"}";
  static constexpr const char* kUnfinished = "todoke_http_unfinished_bytes{listener=\"public\"}";
  static constexpr const char* kUnfinishedDropped =
      "todoke_http_unfinished_dropped_total{listener=\"public\"}";

  void block_worker(RawClient& client) {
    client.send(get("/block"));
    stands_still.get_future().wait();
  }
  std::vector<RawClient> connect(std::size_t count) {
    std::vector<RawClient> clients(count);
    for (auto& client : clients) client.connect(rig.port());
    return clients;
  }
};

TEST_F(HttpDoors, SilentConnectionsCostTheWorkersNothing) {
  rig.config.limits.header_timeout = 1s;
  rig.start();
  RawClient busy(rig.port());
  block_worker(busy);
  auto silent = connect(100);
  for (auto& client : silent) EXPECT_TRUE(client.ended());
  EXPECT_TRUE(rig.await_metric(refused("silent"), 100));
  EXPECT_TRUE(rig.await_metric(kOpen, 1));
  may_go_on.set_value();
  EXPECT_EQ(busy.read_response().status, 200);
}

TEST_F(HttpDoors, ConnectionThatHangsUpBeforeItSpeaksIsForgotten) {
  rig.start();
  RawClient busy(rig.port());
  block_worker(busy);
  {
    const auto clients = connect(50);
    EXPECT_TRUE(rig.await_metric(kOpen, 51));
  }
  EXPECT_TRUE(rig.await_metric(kOpen, 1));
  EXPECT_EQ(rig.metric(refused("silent")), 0);
  may_go_on.set_value();
}

TEST_F(HttpDoors, WorkerIsGivenAFewConnectionsAndTheOthersWaitAtTheDoor) {
  rig.start();
  RawClient busy(rig.port());
  block_worker(busy);
  auto clients = connect(100);
  for (auto& client : clients) client.send(get("/hello"));
  EXPECT_TRUE(rig.await_metric(kOpen, 101));
  may_go_on.set_value();
  for (auto& client : clients) EXPECT_EQ(client.read_response().status, 200);
}

TEST_F(HttpDoors, ConnectionsThatWaitAtTheDoorEndAtOnceWhenTheServerStops) {
  rig.start();
  RawClient busy(rig.port());
  block_worker(busy);
  auto clients = connect(100);
  for (auto& client : clients) client.send(get("/hello"));
  EXPECT_TRUE(rig.await_metric(kOpen, 101));
  rig.ask_to_stop();
  EXPECT_TRUE(todoke::test::await([&] { return rig.server().connections() <= 17; }))
      << "the one that it serves, and sixteen that it was given";
  may_go_on.set_value();
  rig.await_stopped();
}

TEST_F(HttpDoors, SilenceHoldsNoPlaceAgainstANewcomer) {
  rig.config.limits.connections_max = 3;
  rig.start();
  RawClient served(rig.port());
  EXPECT_EQ(served.ask(get("/hello")).status, 200);
  RawClient oldest(rig.port());
  EXPECT_TRUE(rig.await_metric(kOpen, 2));
  RawClient younger(rig.port());
  EXPECT_TRUE(rig.await_metric(kOpen, 3));
  RawClient newcomer(rig.port());
  EXPECT_EQ(newcomer.ask(get("/hello")).status, 200);
  EXPECT_TRUE(oldest.ended());
  EXPECT_EQ(rig.metric(refused("connections_max")), 1);
  EXPECT_EQ(younger.ask(get("/hello")).status, 200);
  EXPECT_EQ(served.ask(get("/hello")).status, 200);
  // All have spoken.
  RawClient fifth(rig.port());
  EXPECT_EQ(fifth.ask(get("/hello")).status, 503);
}

TEST_F(HttpDoors, FloodOfOneAddressIsRefusedWithoutAWorker) {
  rig.config.limits.connections_per_address = 1;
  rig.start();
  RawClient busy(rig.port());
  block_worker(busy);
  auto flood = connect(500);
  EXPECT_TRUE(rig.await_metric(refused("connections_per_address"), 500));
  int told = 0;
  for (auto& client : flood) {
    const auto answer = client.read_response();
    told += answer.status == 429 ? 1 : 0;
    EXPECT_TRUE(answer.status == 429 || answer.status == 0);
  }
  EXPECT_GE(told, 1);
  EXPECT_EQ(rig.metric(kOpen), 1);
  may_go_on.set_value();
  EXPECT_EQ(busy.read_response().status, 200);
}

TEST_F(HttpDoors, RequestPaysBeforeItsBodyIsReadAndItsHandlerCalled) {
  int left = 2;
  rig.router->set_toll([&left](const Request&) -> std::optional<Response> {
    if (left-- > 0) return std::nullopt;
    auto response = error_response(429, "RATE_LIMITED", "slow down");
    response.headers.set("Retry-After", "7");
    return response;
  });
  bool was_called = false;
  rig.router->add("POST", "/post", [&was_called](Request&) -> Task<Response> {
    was_called = true;
    co_return text_response(200, "");
  });
  rig.start();
  RawClient client(rig.port());
  EXPECT_EQ(client.ask(get("/hello")).status, 200);
  EXPECT_EQ(client.ask(get("/nothing")).status, 404) << "it pays, too";
  client.send("POST /post HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n");
  const auto refused_one = client.read_response();
  EXPECT_EQ(refused_one.status, 429);
  EXPECT_EQ(refused_one.header("Retry-After"), "7");
  EXPECT_EQ(refused_one.header("Connection"), "close");
  EXPECT_TRUE(client.ended());
  EXPECT_FALSE(was_called);
  EXPECT_EQ(rig.metric("todoke_http_requests_limited_total{listener=\"public\"}"), 1);
}

TEST_F(HttpDoors, RequestsThatNobodyCanReadAndForForeignHostsPayToo) {
  rig.config.hosts = HostRule(rig.config.listen, {});
  std::vector<std::string> payers;
  rig.router->set_toll([&payers](const Request& request) -> std::optional<Response> {
    payers.push_back(request.client_ip);
    if (payers.size() < 3) return std::nullopt;
    return error_response(429, "RATE_LIMITED", "slow down");
  });
  rig.start();
  const std::string garbage = "what is this?\r\n\r\n";
  const std::string foreign = "GET /hello HTTP/1.1\r\nHost: evil.example\r\n\r\n";
  EXPECT_EQ(RawClient(rig.port()).ask(garbage).status, 400);
  EXPECT_EQ(RawClient(rig.port()).ask(foreign).status, 421);
  EXPECT_EQ(RawClient(rig.port()).ask(garbage).status, 429);
  EXPECT_EQ(RawClient(rig.port()).ask(foreign).status, 429);
  rig.ask_to_stop();
  rig.await_stopped();
  EXPECT_EQ(payers, std::vector<std::string>(4, "127.0.0.1"));
}

TEST_F(HttpDoors, ProxyDoesNotPayForWhatItsClientsSend) {
  int paid = 0;
  rig.config.trusted_proxies = {"127.0.0.1"};
  rig.router->set_toll([&paid](const Request&) -> std::optional<Response> {
    ++paid;
    return std::nullopt;
  });
  rig.start();
  EXPECT_EQ(RawClient(rig.port()).ask("what is this?\r\n\r\n").status, 400);
  rig.ask_to_stop();
  rig.await_stopped();
  EXPECT_EQ(paid, 0);
}

// Bodies that don't end: of those who hold most one goes, and the others go on.
TEST_F(HttpDoors, BodiesThatHaveNotArrivedWholeAreBoundedAndWhoHoldsMostGivesWay) {
  rig.config.limits.unfinished_bytes_max = 100'000;
  rig.router->add("POST", "/post", echo);
  rig.start();
  const auto begin = [](std::size_t bytes) {
    return "POST /post HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000\r\n\r\n" +
           std::string(bytes, 'b');
  };
  RawClient modest(rig.port());
  modest.send(begin(10'000));
  EXPECT_TRUE(rig.await_metric_above(kUnfinished, 9'999));
  std::vector<HostileClient> greedy;
  for (const std::size_t bytes : {40'000U, 59'000U}) {
    greedy.emplace_back(rig.port(), "127.0.0.2");
    greedy.back().write(begin(bytes));
  }
  EXPECT_THAT(greedy.back().read_to_end(), testing::HasSubstr("503 Service Unavailable"));
  EXPECT_EQ(rig.metric(kUnfinishedDropped), 1);
  modest.send(std::string(50'000, 'b'));
  EXPECT_EQ(modest.read_response().status, 200);
  greedy.clear();
  EXPECT_TRUE(rig.await_metric(kUnfinished, 0));
}

TEST_F(HttpDoors, RoutesWithLimitsOfTheirOwnAndUpgradesPayNoToll) {
  struct Nobody final : WsHandler {
    void on_open(const std::shared_ptr<WsConnection>& connection) override { connection->close(1000, ""); }
    void on_message(WsOpcode, std::string_view) override {}
    void on_close(std::uint16_t, std::string_view) override {}
  };
  std::atomic<int> asked = 0;
  rig.router->set_toll([&asked](const Request&) -> std::optional<Response> {
    ++asked;
    return std::nullopt;
  });
  RouteOptions free;
  free.pays_toll = false;
  rig.router->add("GET", "/free", echo, free);
  rig.router->add_websocket("/ws", [](const Request&) { return std::make_shared<Nobody>(); });
  rig.start();
  RawClient client(rig.port());
  EXPECT_EQ(client.ask(get("/free")).status, 200);
  EXPECT_EQ(client
                .ask(get("/ws",
                         "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                         "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"))
                .status,
            101);
  EXPECT_EQ(asked, 0);
  RawClient wrong(rig.port());
  EXPECT_EQ(wrong.ask(get("/ws", "Upgrade: websocket\r\nConnection: Upgrade\r\n")).status, 426);
  EXPECT_EQ(asked, 1) << "no upgrade, so it pays";
}

}  // namespace
}  // namespace todoke::net::test

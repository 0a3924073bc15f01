// Who comes in: what connections cost that say nothing or are too many, and what a request costs its client.
#include <gtest/gtest.h>

#include "handlers.hpp"
#include "harness/http_rig.hpp"

namespace todoke::net::test {
namespace {

using namespace std::chrono_literals;

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

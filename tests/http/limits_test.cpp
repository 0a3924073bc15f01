// What a peer or a handler may make the server wait for, and how many may.
#include <gtest/gtest.h>

#include "handlers.hpp"
#include "harness/http_rig.hpp"

namespace todoke::net::test {
namespace {

using namespace std::chrono_literals;

// In which a client connects and asks on a busy machine too.
constexpr auto kForOneRequest = 1s;

struct HttpLimits : testing::Test {
  Rig rig;
  Gate gate{rig.worker()};

  HttpLimits() {
    rig.router->add("GET", "/hello", echo);
    rig.router->add("POST", "/echo", echo);
    rig.router->add("GET", "/gate", [this](Request& request) { return pass(gate, request); });
    rig.router->add("GET", "/hurry", [this](Request& request) { return pass(gate, request); },
                    {.body_bytes_max = {}, .deadline = 50ms, .content_type = {}});
  }
  static Task<Response> pass(Gate& gate, Request& request) {
    co_await gate.pass();
    co_return text_response(200, request.path);
  }
};

TEST_F(HttpLimits, SlowHeaderIsAnsweredWithTimeout) {
  rig.config.limits.header_timeout = kForOneRequest;
  rig.start();
  RawClient client(rig.port());
  client.send("GET /hello HTTP/1.1\r\nHo");
  const auto response = client.read_response();
  EXPECT_EQ(response.status, 408);
  EXPECT_NE(response.body.find("REQUEST_TIMEOUT"), std::string::npos);
  EXPECT_TRUE(client.ended());
}

TEST_F(HttpLimits, SlowBodyIsAnsweredWithTimeout) {
  rig.config.limits.body_timeout = 50ms;
  rig.start();
  RawClient client(rig.port());
  client.send("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 10\r\n\r\n12345");
  EXPECT_EQ(client.read_response().status, 408);
  EXPECT_TRUE(client.ended());
}

TEST_F(HttpLimits, IdleConnectionIsClosedWithoutAWord) {
  rig.config.limits.idle_timeout = kForOneRequest;
  rig.start();
  RawClient fresh(rig.port());
  EXPECT_TRUE(fresh.ended());
  RawClient used(rig.port());
  EXPECT_EQ(used.ask(get("/hello")).status, 200);
  EXPECT_TRUE(used.ended());
}

TEST_F(HttpLimits, ConnectionThatSaysNothingKeepsItsPlaceForTheTimeOfAHeaderOnly) {
  rig.config.limits.header_timeout = kForOneRequest;
  rig.start();
  RawClient silent(rig.port());
  EXPECT_TRUE(silent.ended());
  EXPECT_EQ(rig.metric("todoke_http_connections_refused_total{listener=\"public\",reason=\"silent\"}"), 1);
  RawClient used(rig.port());
  EXPECT_EQ(used.ask(get("/hello")).status, 200);
  EXPECT_EQ(used.ask(get("/hello")).status, 200);
}

TEST_F(HttpLimits, ConnectionsOfAnAddressAreCounted) {
  rig.config.limits.connections_per_address = 2;
  rig.start();
  {
    RawClient first(rig.port());
    RawClient second(rig.port());
    EXPECT_EQ(first.ask(get("/hello")).status, 200);
    EXPECT_EQ(second.ask(get("/hello")).status, 200);
    RawClient third(rig.port());
    const auto refused = third.ask(get("/hello"));
    EXPECT_EQ(refused.status, 429);
    EXPECT_EQ(refused.header("Retry-After"), "10");
    EXPECT_TRUE(third.ended());
    EXPECT_EQ(rig.metric("todoke_http_connections_refused_total{listener=\"public\",reason=\"connections_per_"
                         "address\"}"),
              1);
    EXPECT_EQ(first.ask(get("/hello")).status, 200);
  }
  EXPECT_TRUE(rig.await_metric("todoke_http_connections{listener=\"public\"}", 0));
  RawClient fourth(rig.port());
  EXPECT_EQ(fourth.ask(get("/hello")).status, 200);
}

TEST_F(HttpLimits, HandlerOverItsDeadlineIsAnsweredForAndItsAnswerDropped) {
  rig.start();
  RawClient client(rig.port());
  client.send(get("/hurry") + get("/hello"));
  const auto response = client.read_response();
  EXPECT_EQ(response.status, 503);
  EXPECT_NE(response.body.find("DEADLINE_EXCEEDED"), std::string::npos);
  EXPECT_EQ(rig.server().connections(), 1U) << "the handler still runs";
  gate.open();
  EXPECT_TRUE(client.ended());
  EXPECT_TRUE(rig.await_metric("todoke_http_connections{listener=\"public\"}", 0));
  EXPECT_EQ(
      rig.metric(
          "todoke_http_requests_total{listener=\"public\",route=\"/hurry\",method=\"GET\",status=\"5xx\"}"),
      1);
  EXPECT_EQ(
      rig.metric(
          "todoke_http_requests_total{listener=\"public\",route=\"/hurry\",method=\"GET\",status=\"2xx\"}"),
      0);
}

TEST_F(HttpLimits, ClientThatDoesNotReadIsCutAfterTheWriteTimeout) {
  rig.config.limits.write_timeout = 50ms;
  std::atomic<bool> is_asked = false;
  rig.router->add("GET", "/large", [&is_asked](Request&) -> Task<Response> {
    is_asked = true;
    co_return text_response(200, std::string(64 * 1024 * 1024, 'x'));
  });
  rig.start();
  RawClient client(rig.port());
  client.send(get("/large"));
  EXPECT_TRUE(todoke::test::await([&] { return is_asked.load(); }));
  EXPECT_TRUE(rig.await_metric("todoke_http_connections{listener=\"public\"}", 0));
}

TEST_F(HttpLimits, ConnectionOverTheCapIsTurnedAwayAndTheNextServedAgain) {
  rig.config.limits.connections_max = 1;
  rig.start();
  {
    RawClient first(rig.port());
    EXPECT_EQ(first.ask(get("/hello")).status, 200);
    RawClient second(rig.port());
    const auto refused = second.ask(get("/hello"));
    EXPECT_EQ(refused.status, 503);
    EXPECT_NE(refused.body.find("TOO_MANY_CONNECTIONS"), std::string::npos);
    EXPECT_TRUE(second.ended());
    EXPECT_EQ(
        rig.metric("todoke_http_connections_refused_total{listener=\"public\",reason=\"connections_max\"}"),
        1);
    EXPECT_EQ(first.ask(get("/hello")).status, 200);
  }
  EXPECT_TRUE(rig.await_metric("todoke_http_connections{listener=\"public\"}", 0));
  RawClient third(rig.port());
  EXPECT_EQ(third.ask(get("/hello")).status, 200);
}

TEST_F(HttpLimits, PipelinedRequestsBehindTheLastOneDoNotCostItsAnswer) {
  rig.start();
  RawClient client(rig.port());
  client.send(get("/hello", "Connection: close\r\n") + get("/hello") + get("/hello"));
  EXPECT_EQ(client.read_response().status, 200);
  client.finish_sending();
  EXPECT_TRUE(client.ended());
}

TEST_F(HttpLimits, RequestUnderWayIsFinishedAtShutdown) {
  rig.start();
  RawClient busy(rig.port());
  RawClient idle(rig.port());
  EXPECT_EQ(idle.ask(get("/hello")).status, 200);
  busy.send(get("/gate"));
  gate.await_entered();
  rig.ask_to_stop();
  EXPECT_TRUE(idle.ended()) << "closed at once, while the other request is still under way";
  gate.open();
  const auto response = busy.read_response();
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.header("Connection"), "close");
  rig.await_stopped();
  EXPECT_EQ(rig.server().connections(), 0U);
}

TEST_F(HttpLimits, ConnectionThatDoesNotEndIsCutAfterTheDrainTimeout) {
  rig.config.limits.drain_timeout = 50ms;
  rig.start();
  RawClient slow(rig.port());
  slow.send("GET /hello HTTP/1.1\r\n");
  EXPECT_TRUE(rig.await_metric("todoke_http_connections{listener=\"public\"}", 1));
  rig.ask_to_stop();
  rig.await_stopped();
  EXPECT_TRUE(slow.ended());
}

TEST_F(HttpLimits, StoppedServerAcceptsNobody) {
  rig.start();
  const auto port = rig.port();
  rig.ask_to_stop();
  rig.await_stopped();
  EXPECT_THROW(RawClient{port}, std::runtime_error);
}

TEST_F(HttpLimits, StopBeforeRunTakesEffect) {
  Loop loop;
  rig.config.router = rig.router;
  HttpServer server(rig.config, loop.executor(), {loop.executor()}, rig.registry);
  loop.run(server.start());
  loop.call([&] { server.stop(); });
  loop.run(server.run());
}

TEST_F(HttpLimits, ConnectionsAreSpreadOverTheWorkers) {
  Rig many(3);
  many.router->add("GET", "/thread", [](Request&) -> Task<Response> {
    co_return text_response(200, std::to_string(std::hash<std::thread::id>{}(std::this_thread::get_id())));
  });
  many.start();
  std::vector<std::unique_ptr<RawClient>> clients;
  std::vector<std::string> threads;
  for (int i = 0; i < 6; ++i) {
    clients.push_back(std::make_unique<RawClient>(many.port()));
    threads.push_back(clients.back()->ask(get("/thread")).body);
  }
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(threads[i], threads[i + 3]);
    EXPECT_NE(threads[i], threads[(i + 1) % 3]);
    EXPECT_EQ(clients[i]->ask(get("/thread")).body, threads[i]) << "a connection stays on its worker";
  }
}

}  // namespace
}  // namespace todoke::net::test

// What the server adds to a request and tells about it: ids, client, traces, metrics, logs, failures; and
// upgrades.
#include <mutex>

#include <gtest/gtest.h>

#include "base/log.hpp"
#include "handlers.hpp"
#include "harness/http_rig.hpp"

namespace todoke::net::test {
namespace {

class Greeter final : public WsHandler {
 public:
  void on_open(const std::shared_ptr<WsConnection>& connection) override { connection->send_text("welcome"); }
  void on_message(WsOpcode, std::string_view) override {}
  void on_close(std::uint16_t, std::string_view) override {}
};

struct HttpRequests : testing::Test {
  Rig rig;

  HttpRequests() {
    rig.router->add("GET", "/hello/{name}", echo);
    rig.router->add("GET", "/fail", fail);
    rig.router->add("GET", "/who", who);
    rig.router->add("GET", "/broken-header", [](Request&) -> Task<Response> {
      auto response = text_response(200, "x");
      response.headers.add("X-Bad", "a\r\nSet-Cookie: b");
      co_return response;
    });
    rig.router->add_websocket("/live", [](const Request&) { return std::make_shared<Greeter>(); });
    rig.router->add_websocket("/full", [](const Request&) { return nullptr; });
  }
};

const std::string kUpgrade =
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

TEST_F(HttpRequests, UsableRequestIdIsEchoedAndOthersReplaced) {
  rig.start();
  RawClient client(rig.port());
  EXPECT_EQ(client.ask(get("/hello/x", "X-Request-Id: Abc-1._\r\n")).header("X-Request-Id"), "Abc-1._");
  const auto first = client.ask(get("/hello/x")).header("X-Request-Id");
  const auto second = client.ask(get("/hello/x", "X-Request-Id: <script>\r\n")).header("X-Request-Id");
  EXPECT_FALSE(first.empty());
  EXPECT_FALSE(second.empty());
  EXPECT_NE(first, second);
  EXPECT_EQ(second.find('<'), std::string::npos);
  EXPECT_NE(client.ask(get("/hello/x", "X-Request-Id: " + std::string(65, 'a') + "\r\n"))
                .header("X-Request-Id")
                .size(),
            65U);
}

TEST_F(HttpRequests, HandlerThatThrowsIsInternalErrorWithoutItsText) {
  std::mutex mutex;
  std::string lines;
  const log::Capture capture([&](std::string_view line) {
    const std::lock_guard lock(mutex);
    lines += std::string(line) + "\n";
  });
  rig.start();
  RawClient client(rig.port());
  const auto response = client.ask(get("/fail", "X-Request-Id: the-id\r\n"));
  EXPECT_EQ(response.status, 500);
  EXPECT_EQ(response.body, "{\"code\":\"INTERNAL\",\"message\":\"internal error\",\"details\":{}}");
  EXPECT_EQ(client.ask(get("/hello/x")).status, 200) << "the connection goes on";
  log::flush();
  const std::lock_guard lock(mutex);
  EXPECT_NE(lines.find("secret of the house"), std::string::npos);
  EXPECT_NE(lines.find("the-id"), std::string::npos);
}

TEST_F(HttpRequests, HeaderWithALineBreakNeverGoesOut) {
  rig.start();
  RawClient client(rig.port());
  const auto response = client.ask(get("/broken-header"));
  EXPECT_EQ(response.status, 500);
  EXPECT_EQ(response.header("Set-Cookie"), "");
}

TEST_F(HttpRequests, ForwardingHeadersCountFromListedProxiesOnly) {
  const auto forwarded = get("/who", "X-Forwarded-For: 6.6.6.6, 1.2.3.4\r\nX-Forwarded-Proto: https\r\n");
  {
    Rig plain;
    plain.router->add("GET", "/who", who);
    plain.start();
    EXPECT_EQ(RawClient(plain.port()).ask(forwarded).body, "127.0.0.1 plain");
  }
  rig.config.trusted_proxies = {"127.0.0.0/8"};
  rig.start();
  EXPECT_EQ(RawClient(rig.port()).ask(forwarded).body, "1.2.3.4 secure");
}

TEST_F(HttpRequests, CountsRequestsByPatternMethodAndClass) {
  rig.start();
  RawClient client(rig.port());
  client.ask(get("/hello/a"));
  client.ask(get("/hello/b"));
  client.ask(get("/nowhere/secret"));
  client.ask("BREW /hello/a HTTP/1.1\r\nHost: t\r\n\r\n");
  EXPECT_TRUE(rig.await_metric(
      "todoke_http_requests_total{listener=\"public\",route=\"/hello/{name}\",method=\"GET\",status=\"2xx\"}",
      2));
  EXPECT_TRUE(rig.await_metric(
      "todoke_http_requests_total{listener=\"public\",route=\"none\",method=\"GET\",status=\"4xx\"}", 1));
  EXPECT_TRUE(rig.await_metric(
      "todoke_http_requests_total{listener=\"public\",route=\"none\",method=\"other\",status=\"4xx\"}", 1));
  EXPECT_TRUE(
      rig.await_metric("todoke_http_request_seconds_count{listener=\"public\",route=\"/hello/{name}\"}", 2));
  EXPECT_EQ(rig.registry.render().find("secret"), std::string::npos);
}

TEST_F(HttpRequests, LogNamesTheRouteAndNeitherPathNorQuery) {
  std::mutex mutex;
  std::string lines;
  const log::Capture capture([&](std::string_view line) {
    const std::lock_guard lock(mutex);
    lines += std::string(line) + "\n";
  });
  log::configure(log::Level::debug, log::Format::human);
  rig.start();
  RawClient client(rig.port());
  client.ask(get("/hello/private?token=hidden"));
  EXPECT_TRUE(
      rig.await_metric("todoke_http_request_seconds_count{listener=\"public\",route=\"/hello/{name}\"}", 1));
  client.ask(get("/nowhere"));  // the line of the first request is written by now
  log::flush();
  log::configure(log::Level::info, log::Format::human);
  const std::lock_guard lock(mutex);
  EXPECT_NE(lines.find("route=/hello/{name}"), std::string::npos) << lines;
  EXPECT_EQ(lines.find("private"), std::string::npos);
  EXPECT_EQ(lines.find("hidden"), std::string::npos);
}

TEST_F(HttpRequests, SpanContinuesTheCallersTrace) {
  rig.tracer.enable(true);
  std::optional<TraceContext> seen;
  rig.router->add("GET", "/traced", [&seen](Request& request) -> Task<Response> {
    seen = request.trace;
    co_return Response{};
  });
  rig.start();
  RawClient client(rig.port());
  client.ask(get("/traced", "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n"));
  client.ask(get("/hello/x"));
  const auto spans = rig.tracer.take(10);
  ASSERT_GE(spans.size(), 1U);
  EXPECT_EQ(spans[0].name, "GET /traced");
  EXPECT_EQ(format_traceparent(spans[0].context).substr(3, 32), "0af7651916cd43dd8448eb211c80319c");
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ(seen->span_id, spans[0].context.span_id)
      << "what the handler starts hangs below the request's span";
}

TEST_F(HttpRequests, UpgradeBecomesAWebsocketThatIsClosedAtShutdown) {
  rig.start();
  RawClient client(rig.port());
  client.send(get("/live", kUpgrade));
  const auto response = client.read_response();
  EXPECT_EQ(response.status, 101);
  EXPECT_EQ(response.header("Sec-WebSocket-Accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  EXPECT_EQ(response.header("Content-Length"), "");
  EXPECT_EQ(client.read_exactly(9), "\x81\x07welcome");
  rig.ask_to_stop();
  const auto close = client.read_exactly(4);
  EXPECT_EQ(close.substr(0, 1), "\x88");
  EXPECT_EQ(close.substr(2), "\x03\xF4") << "1012";
  client.finish_sending();
  rig.await_stopped();
}

TEST_F(HttpRequests, WebsocketWithoutRoomIsRefused) {
  rig.start();
  EXPECT_EQ(RawClient(rig.port()).ask(get("/full", kUpgrade)).status, 503);
  EXPECT_EQ(RawClient(rig.port()).ask(get("/live")).status, 426);
}

}  // namespace
}  // namespace todoke::net::test

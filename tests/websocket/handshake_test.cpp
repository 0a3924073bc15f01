#include <gtest/gtest.h>

#include "echo_server.hpp"
#include "raw_client.hpp"

namespace todoke::net {
namespace {

// A request with one line replaced, or left out when the replacement is empty.
std::string with(std::string_view name, std::string_view replacement) {
  std::string request(kHandshake);
  const auto at = request.find(name);
  const auto end = request.find("\r\n", at) + 2;
  request.replace(at, end - at, replacement.empty() ? std::string() : std::string(replacement) + "\r\n");
  return request + "\r\n";
}

std::string answer_to(const WsTestServer& server, std::string_view request) {
  RawClient client(server.port(), RawClient::NoHandshake());
  return client.request(request);
}

TEST(WebSocketHandshake, AnswersTheExampleOfTheRfc) {
  WsTestServer server;
  const std::string answer = answer_to(server, std::string(kHandshake) + "\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 101 "));
  EXPECT_NE(answer.find("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), std::string::npos);
  EXPECT_NE(answer.find("Upgrade: websocket\r\n"), std::string::npos);
  EXPECT_NE(answer.find("Connection: Upgrade\r\n"), std::string::npos);
  EXPECT_EQ(answer.find("Sec-WebSocket-Extensions"), std::string::npos);
}

TEST(WebSocketHandshake, AcceptsOtherCasesAndListsOfTokens) {
  WsTestServer server;
  const std::vector<std::string> requests{
      with("Upgrade: websocket", "UPGRADE: WebSocket"),
      with("Connection:", "connection: keep-alive, Upgrade"),
      with("Connection:", "Connection: keep-alive\r\nConnection: upgrade"),
      with("Host:", "Host: other\r\nSec-WebSocket-Protocol: chat, superchat"),
  };
  for (const std::string& request : requests) {
    const std::string answer = answer_to(server, request);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 101 ")) << request << answer;
    EXPECT_EQ(answer.find("Sec-WebSocket-Protocol"), std::string::npos) << "no subprotocol is ever chosen";
  }
}

TEST(WebSocketHandshake, RefusesWhatIsNoRequestForAWebSocket) {
  WsTestServer server;
  const std::string key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
  const std::vector<std::pair<std::string, std::string>> requests{
      {with("Upgrade: websocket", ""), "426"},
      {with("Upgrade: websocket", "Upgrade: h2c"), "426"},
      {with("Connection:", ""), "426"},
      {with("Connection:", "Connection: close"), "426"},
      {with("GET ", "GET / HTTP/1.0"), "400"},
      {with("Sec-WebSocket-Key", ""), "400"},
      {with("Sec-WebSocket-Key", "Sec-WebSocket-Key: "), "400"},
      {with("Sec-WebSocket-Key", "Sec-WebSocket-Key: dGhlIHNhbXBsZQ=="), "400"},
      {with("Sec-WebSocket-Key", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZSBub25j"), "400"},
      {with("Sec-WebSocket-Key", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25j!Q=="), "400"},
      {with("Sec-WebSocket-Key", key + "\r\n" + key), "400"},
      {with("Host:", "Host: test\r\nSec-WebSocket-Extensions: permessage-deflate; =1"), "400"},
      {with("Host:", "Host: test\r\nSec-WebSocket-Extensions: permessage-deflate; a=\"open"), "400"},
  };
  for (const auto& [request, status] : requests) {
    const std::string answer = answer_to(server, request);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 " + status + " ")) << request << answer;
  }
  const std::string answer = answer_to(server, with("GET ", "POST / HTTP/1.1\r\nContent-Length: 0"));
  EXPECT_EQ(answer.find(" 101 "), std::string::npos) << answer;
}

TEST(WebSocketHandshake, OtherMethodsAndBodiesAreRefused) {
  Request request;
  request.method = "GET";
  request.headers.add("Upgrade", "websocket");
  request.headers.add("Connection", "Upgrade");
  request.headers.add("Sec-WebSocket-Version", "13");
  request.headers.add("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
  EXPECT_TRUE(accept_websocket(request, WsOptions()).accepted);
  request.body = "x";
  EXPECT_EQ(accept_websocket(request, WsOptions()).response.status, 400);
  request.body.clear();
  request.method = "PUT";
  EXPECT_EQ(accept_websocket(request, WsOptions()).response.status, 400);
}

TEST(WebSocketHandshake, AnswersOtherVersionsWithItsOwn) {
  WsTestServer server;
  for (const char* line :
       {"", "Sec-WebSocket-Version: 8", "Sec-WebSocket-Version: 14", "Sec-WebSocket-Version: 13, 8"}) {
    const std::string answer = answer_to(server, with("Sec-WebSocket-Version", line));
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 426 ")) << line;
    EXPECT_NE(answer.find("Sec-WebSocket-Version: 13\r\n"), std::string::npos) << line;
  }
}

TEST(WebSocketHandshake, AnUpgradeToSomethingElseIsNotOurs) {
  Request request;
  EXPECT_FALSE(is_websocket_upgrade(request));
  request.headers.add("Upgrade", "h2c");
  request.headers.add("Connection", "Upgrade");
  EXPECT_FALSE(is_websocket_upgrade(request));
  request.headers.add("upgrade", "websocket");
  EXPECT_TRUE(is_websocket_upgrade(request));
}

}  // namespace
}  // namespace todoke::net

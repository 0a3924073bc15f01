#include "net/client.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fake_peer.hpp"
#include "handlers.hpp"
#include "harness/http_rig.hpp"

namespace todoke::net::test {
namespace {

using namespace std::chrono_literals;
using Kind = ClientError::Kind;

const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

Task<void> send_into(HttpClient& client, ClientRequest request, std::chrono::milliseconds limit,
                     Response& response) {
  response = co_await client.send(std::move(request), Deadline::after(limit));
}

struct HttpClientTest : testing::Test {
  Loop loop;
  ClientOptions options;
  std::unique_ptr<HttpClient> client;

  HttpClientTest() { options.body_bytes_max = 1000; }
  ~HttpClientTest() override {
    loop.call([this] { client.reset(); });
  }

  ClientRequest request(std::uint16_t port, std::string_view target = "/", std::string method = "GET") {
    ClientRequest r;
    r.method = std::move(method);
    r.url = parse_url(fmt::format("http://127.0.0.1:{}{}", port, target)).value();
    return r;
  }
  Response send(ClientRequest r, std::chrono::milliseconds limit = kPatience) {
    if (!client) client = std::make_unique<HttpClient>(loop.executor(), options);
    Response response;
    loop.run(send_into(*client, std::move(r), limit, response));
    return response;
  }
  ClientError failure(ClientRequest r, std::chrono::milliseconds limit = kPatience) {
    try {
      send(std::move(r), limit);
    } catch (const ClientError& error) {
      return error;
    }
    throw std::runtime_error("the request did not fail");
  }
};

TEST_F(HttpClientTest, ExchangesBodiesAndHeadersWithTheServer) {
  Rig rig;
  rig.router->add("POST", "/echo/{name}", [](Request& r) -> Task<Response> {
    auto response = text_response(201, r.body + "|" + r.parameters.at("name"));
    response.headers.add("X-Seen", r.headers.get("X-Sent"));
    response.headers.add("X-Host", r.headers.get("Host"));
    co_return response;
  });
  rig.start();
  auto r = request(rig.port(), "/echo/a%20b", "POST");
  r.body = "payload";
  r.headers.add("X-Sent", "value");
  const auto response = send(std::move(r));
  EXPECT_EQ(response.status, 201);
  EXPECT_EQ(response.body, "payload|a b");
  EXPECT_EQ(response.headers.get("x-seen"), "value");
  EXPECT_EQ(response.headers.get("X-Host"), fmt::format("127.0.0.1:{}", rig.port()));
}

TEST_F(HttpClientTest, ConnectionIsKeptForTheNextRequest) {
  Rig rig;
  rig.router->add("GET", "/", echo);
  rig.start();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(send(request(rig.port())).status, 200);
  EXPECT_EQ(rig.server().connections(), 1U);
  loop.call([this] { EXPECT_EQ(client->idle_connections(), 1U); });
}

TEST_F(HttpClientTest, IdleConnectionsAreBounded) {
  Rig rig;
  Gate gates[3]{Gate(rig.worker()), Gate(rig.worker()), Gate(rig.worker())};
  rig.router->add("GET", "/{gate}", [&gates](Request& r) -> Task<Response> {
    co_await gates[std::stoul(r.parameters.at("gate"))].pass();
    co_return Response{};
  });
  rig.start();
  options.idle_per_host_max = 2;
  client = std::make_unique<HttpClient>(loop.executor(), options);
  Response responses[3];
  std::vector<std::future<void>> running;
  for (std::size_t i = 0; i < 3; ++i) {
    running.push_back(loop.start(
        send_into(*client, request(rig.port(), "/" + std::to_string(i)), kPatience, responses[i])));
    gates[i].await_entered();
  }
  for (auto& gate : gates) gate.open();
  for (auto& one : running) one.get();
  loop.call([this] { EXPECT_EQ(client->idle_connections(), 2U); });
}

TEST_F(HttpClientTest, NobodyListeningIsAConnectError) {
  std::uint16_t port = 0;
  {
    Rig rig;
    rig.start();
    port = rig.port();
  }
  const auto error = failure(request(port));
  EXPECT_EQ(error.kind(), Kind::connect);
  EXPECT_FALSE(error.peer_may_have_seen());
}

TEST_F(HttpClientTest, UnknownNameIsAConnectError) {
  auto r = request(1);
  r.url.host = "no-such-host.invalid";
  const auto error = failure(std::move(r));
  EXPECT_EQ(error.kind(), Kind::connect);
}

TEST_F(HttpClientTest, LossAfterTheRequestWasSentSaysSo) {
  FakePeer peer({[](int s) { FakePeer::read_request(s); }});
  const auto error = failure(request(peer.port()));
  EXPECT_EQ(error.kind(), Kind::lost_sent);
  EXPECT_TRUE(error.peer_may_have_seen());
}

TEST_F(HttpClientTest, LossInsideTheAnswerSaysSo) {
  FakePeer peer({[](int s) {
    FakePeer::read_request(s);
    FakePeer::write(s, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
  }});
  EXPECT_EQ(failure(request(peer.port())).kind(), Kind::lost_sent);
}

TEST_F(HttpClientTest, SilentPeerIsATimeoutThatItMayHaveSeen) {
  FakePeer peer({[](int s) { FakePeer::await_end(s); }});
  const auto error = failure(request(peer.port()), 50ms);
  EXPECT_EQ(error.kind(), Kind::timeout);
  EXPECT_TRUE(error.peer_may_have_seen());
}

TEST_F(HttpClientTest, MalformedAndOversizedAnswersAreBadResponses) {
  const std::vector<std::string> answers{
      "SSH-2.0-OpenSSH\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n400\r\n" + std::string(0x400, 'x') + "\r\n",
      "HTTP/1.1 200 OK\r\n\r\n" + std::string(1001, 'x'),
      "HTTP/1.1 200 OK\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n",
  };
  for (const auto& answer : answers) {
    FakePeer peer({[answer](int s) {
      FakePeer::read_request(s);
      FakePeer::write(s, answer);
      FakePeer::await_end(s);
    }});
    EXPECT_EQ(failure(request(peer.port())).kind(), Kind::bad_response) << answer.substr(0, 60);
  }
}

TEST_F(HttpClientTest, BodyWithoutLengthEndsWithTheConnection) {
  FakePeer peer({[](int s) {
    FakePeer::read_request(s);
    FakePeer::write(s, "HTTP/1.1 200 OK\r\n\r\nall of it");
  }});
  EXPECT_EQ(send(request(peer.port())).body, "all of it");
}

TEST_F(HttpClientTest, ChunkedBodyAndInterimAnswersAreUnderstood) {
  FakePeer peer({[](int s) {
    FakePeer::read_request(s);
    FakePeer::write(
        s,
        "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
    FakePeer::await_end(s);
  }});
  EXPECT_EQ(send(request(peer.port())).body, "abcde");
}

TEST_F(HttpClientTest, AnswerToHeadHasNoBody) {
  FakePeer peer({[](int s) {
    FakePeer::read_request(s);
    FakePeer::write(s, "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n");
    FakePeer::await_end(s);
  }});
  EXPECT_EQ(send(request(peer.port(), "/", "HEAD")).status, 200);
}

TEST_F(HttpClientTest, ConnectionThatThePeerClosedWhileIdleIsNotUsed) {
  std::promise<void> closed;
  FakePeer peer({[&](int s) {
                   FakePeer::read_request(s);
                   FakePeer::write(s, kOk);
                   ::shutdown(s, SHUT_RDWR);
                   closed.set_value();
                 },
                 [](int s) {
                   FakePeer::read_request(s);
                   FakePeer::write(s, kOk);
                 }});
  EXPECT_EQ(send(request(peer.port())).status, 200);
  closed.get_future().wait();
  loop.call([this] { EXPECT_EQ(client->idle_connections(), 1U); });
  EXPECT_EQ(send(request(peer.port(), "/", "POST")).status, 200);
}

// The second copy would be taken for the answer to the next request.
TEST_F(HttpClientTest, ConnectionOnWhichAnAnswerCameTwiceIsNotUsedAgain) {
  const std::string another = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nanother";
  std::promise<void> twice;
  FakePeer peer({[&](int s) {
                   FakePeer::read_request(s);
                   FakePeer::write(s, kOk + kOk);
                 },
                 [&](int s) {
                   FakePeer::read_request(s);
                   FakePeer::write(s, kOk);
                   FakePeer::write(s, kOk);
                   twice.set_value();
                 },
                 [&](int s) {
                   FakePeer::read_request(s);
                   FakePeer::write(s, another);
                 }});
  EXPECT_EQ(send(request(peer.port())).body, "ok");
  EXPECT_EQ(send(request(peer.port())).body, "ok");
  twice.get_future().wait();
  EXPECT_EQ(send(request(peer.port())).body, "another");
}

TEST_F(HttpClientTest, RequestLostOnAnIdleConnectionIsSentAgainOnlyWhenThatIsSafe) {
  // The first connection answers once and then breaks inside the second request.
  const auto breaks = [](int s) {
    FakePeer::read_request(s);
    FakePeer::write(s, kOk);
    FakePeer::read_request(s);
  };
  const auto answers = [](int s) {
    FakePeer::read_request(s);
    FakePeer::write(s, kOk);
  };
  {
    FakePeer peer({breaks});
    EXPECT_EQ(send(request(peer.port())).status, 200);
    const auto error = failure(request(peer.port(), "/", "POST"));
    EXPECT_EQ(error.kind(), Kind::lost_sent);
  }
  FakePeer peer({breaks, answers});
  EXPECT_EQ(send(request(peer.port())).status, 200);
  auto again = request(peer.port(), "/", "POST");
  again.repeatable = true;
  EXPECT_EQ(send(std::move(again)).status, 200);
}

TEST_F(HttpClientTest, HeaderWithALineBreakNeverGoesOut) {
  auto r = request(1);
  r.headers.add("X", "a\r\nB: c");
  EXPECT_THROW(send(std::move(r)), std::invalid_argument);
}

}  // namespace
}  // namespace todoke::net::test

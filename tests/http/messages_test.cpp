// How messages are taken apart and put together: keep-alive, pipelining, bodies, HEAD, HTTP/1.0.
#include <gtest/gtest.h>

#include "handlers.hpp"
#include "harness/http_rig.hpp"

namespace todoke::net::test {
namespace {

struct HttpMessages : testing::Test {
  Rig rig;

  HttpMessages() {
    rig.router->add("GET", "/hello", echo);
    rig.router->add("POST", "/echo", echo);
    rig.router->add("POST", "/small", echo, {.body_bytes_max = 4, .deadline = {}, .content_type = {}});
    rig.router->add("POST", "/json", echo,
                    {.body_bytes_max = {}, .deadline = {}, .content_type = "application/json"});
    rig.config.limits.body_bytes_max = 100'000;
    rig.start();
  }
};

TEST_F(HttpMessages, SeveralRequestsUseOneConnection) {
  RawClient client(rig.port());
  for (int i = 0; i < 3; ++i) {
    const auto response = client.ask(get("/hello"));
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "/hello");
    EXPECT_EQ(response.header("Content-Length"), "6");
    EXPECT_NE(response.header("Date"), "");
    EXPECT_EQ(response.header("Connection"), "");
  }
  EXPECT_EQ(rig.server().connections(), 1U);
}

TEST_F(HttpMessages, ConnectionCloseIsHonoured) {
  RawClient client(rig.port());
  EXPECT_EQ(client.ask(get("/hello", "Connection: close\r\n")).header("Connection"), "close");
  EXPECT_TRUE(client.ended());
}

TEST_F(HttpMessages, PipelinedRequestsAreAnsweredInOrder) {
  RawClient client(rig.port());
  std::string block;
  for (int i = 0; i < 50; ++i) block += post("/echo", "number " + std::to_string(i));
  client.send(block);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(client.read_response().body, "number " + std::to_string(i));
}

TEST_F(HttpMessages, RequestMayArriveByteByByte) {
  RawClient client(rig.port());
  for (const char c : post("/echo", "slow")) client.send({&c, 1});
  EXPECT_EQ(client.read_response().body, "slow");
}

TEST_F(HttpMessages, EmptyLinesBeforeARequestAreSkipped) {
  RawClient client(rig.port());
  EXPECT_EQ(client.ask("\r\n\r\n" + get("/hello")).status, 200);
}

TEST_F(HttpMessages, ChunkedBodyIsPutTogether) {
  RawClient client(rig.port());
  const std::string head = "POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(client.ask(head + "3\r\nabc\r\n5;ext=1\r\ndefgh\r\n0\r\nTrailer: x\r\n\r\n").body, "abcdefgh");
  EXPECT_EQ(client.ask(head + "0\r\n\r\n").status, 200);
  EXPECT_EQ(client.ask(get("/hello")).status, 200) << "the connection is still in step";
}

TEST_F(HttpMessages, LargeBodyArrivesWhole) {
  RawClient client(rig.port());
  const std::string body(100'000, 'x');
  EXPECT_EQ(client.ask(post("/echo", body)).body, body);
}

TEST_F(HttpMessages, BodyOverTheServersLimitIsRefused) {
  RawClient declared(rig.port());
  const auto response = declared.ask(post("/echo", std::string(100'001, 'x')));
  EXPECT_EQ(response.status, 413);
  EXPECT_NE(response.body.find("PAYLOAD_TOO_LARGE"), std::string::npos);
  EXPECT_TRUE(declared.ended());

  RawClient absurd(rig.port());
  EXPECT_EQ(absurd.ask("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 999999999999999999\r\n\r\n").status,
            413);

  RawClient chunked(rig.port());
  chunked.send("POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 7; ++i) chunked.send("4000\r\n" + std::string(0x4000, 'x') + "\r\n");
  EXPECT_EQ(chunked.read_response().status, 413);
}

TEST_F(HttpMessages, RouteMayHaveALimitOfItsOwn) {
  RawClient client(rig.port());
  EXPECT_EQ(client.ask(post("/small", "1234")).status, 200);
  EXPECT_EQ(client.ask(post("/small", "12345")).status, 413);
}

TEST_F(HttpMessages, OtherMediaTypeIsRefused) {
  RawClient right(rig.port());
  EXPECT_EQ(right.ask(post("/json", "{}", "Content-Type: Application/JSON; charset=utf-8\r\n")).status, 200);
  const auto wrong = right.ask(post("/json", "{}", "Content-Type: text/plain\r\n"));
  EXPECT_EQ(wrong.status, 415);
  EXPECT_NE(wrong.body.find("UNSUPPORTED_MEDIA_TYPE"), std::string::npos);
  RawClient packed(rig.port());
  EXPECT_EQ(packed.ask(post("/echo", "{}", "Content-Encoding: gzip\r\n")).status, 415);
}

TEST_F(HttpMessages, ClientThatWaitsIsToldToContinue) {
  RawClient client(rig.port());
  client.send("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.read_response().status, 100);
  EXPECT_EQ(client.ask("ok").body, "ok");
}

TEST_F(HttpMessages, ClientThatWaitsIsRefusedWithoutItsBody) {
  RawClient nowhere(rig.port());
  nowhere.send("POST /nowhere HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(nowhere.read_response().status, 404);
  EXPECT_TRUE(nowhere.ended());
  RawClient large(rig.port());
  large.send("POST /small HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(large.read_response().status, 413);
  RawClient odd(rig.port());
  odd.send("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\nExpect: a-miracle\r\n\r\n");
  EXPECT_EQ(odd.read_response().status, 417);
}

TEST_F(HttpMessages, HeadHasTheLengthButNotTheBody) {
  RawClient client(rig.port());
  client.send("HEAD /hello HTTP/1.1\r\nHost: t\r\n\r\n" + get("/hello"));
  const auto head = client.read_response(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.header("Content-Length"), "6");
  EXPECT_EQ(client.read_response().body, "/hello");
}

TEST_F(HttpMessages, Http10EndsAfterOneRequestUnlessKeptAlive) {
  RawClient client(rig.port());
  EXPECT_EQ(client.ask("GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").header("Connection"),
            "keep-alive");
  EXPECT_EQ(client.ask("GET /hello HTTP/1.0\r\n\r\n").header("Connection"), "close");
  EXPECT_TRUE(client.ended());
}

TEST_F(HttpMessages, ErrorsHaveTheOneShape) {
  RawClient client(rig.port());
  const auto missing = client.ask(get("/nowhere"));
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(missing.body,
            "{\"code\":\"NOT_FOUND\",\"message\":\"there is nothing at this path\",\"details\":{}}");
  EXPECT_EQ(missing.header("Content-Type"), "application/json");
  const auto wrong = client.ask(post("/hello", "ignored"));
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.header("Allow"), "GET, HEAD, OPTIONS");
  EXPECT_EQ(client.ask(get("/hello/%zz")).status, 400);
  EXPECT_EQ(client.ask("OPTIONS /hello HTTP/1.1\r\nHost: t\r\n\r\n").status, 204);
  EXPECT_EQ(client.ask(get("/hello")).status, 200) << "none of these ends the connection";
}

}  // namespace
}  // namespace todoke::net::test

// The closing handshake, started by either side.
#include <gtest/gtest.h>

#include "echo_server.hpp"
#include "raw_client.hpp"

namespace todoke::net {
namespace {

struct End {
  std::uint16_t code;
  std::string reason;
  bool operator==(const End&) const = default;
};

// Tells how its connection ended, and can be told to send or to close.
class Observed : public EchoHandler {
 public:
  explicit Observed(std::promise<End>& ended) : ended_(ended) {}
  void on_message(WsOpcode opcode, std::string_view payload) override {
    if (payload == "throw") throw std::runtime_error("as the test asked");
    if (payload == "close") {
      connection_->send_text("last words");
      connection_->close(4001, "as asked");
      connection_->send_text("never sent");
      return;
    }
    EchoHandler::on_message(opcode, payload);
  }
  void on_close(std::uint16_t code, std::string_view reason) override {
    ended_.set_value({code, std::string(reason)});  // throws when it is called twice
    EchoHandler::on_close(code, reason);
  }

 private:
  std::promise<End>& ended_;
};

struct WebSocketClose : testing::Test {
  std::promise<End> ended;
  WsTestServer server{WsOptions{}, [this] { return std::make_shared<Observed>(ended); }};
  End end() { return await(ended.get_future()); }
};

TEST_F(WebSocketClose, AnEmptyCloseIsAnsweredByAnEmptyOne) {
  EXPECT_EQ(exchange(server.port(), {RawFrame{true, 0, kClose, ""}}),
            (std::vector{RawFrame{true, 0, kClose, ""}}));
  EXPECT_EQ(end(), (End{1005, ""}));
}

TEST_F(WebSocketClose, CodeAndReasonReachTheHandler) {
  EXPECT_EQ(exchange(server.port(), {close_with(4321, "caf\xc3\xa9")}), std::vector{close_with(4321)});
  EXPECT_EQ(end(), (End{4321, "caf\xc3\xa9"}));
}

TEST_F(WebSocketClose, WhatWasSentBeforeIsAnsweredFirst) {
  EXPECT_EQ(exchange(server.port(), {text("a"), close_with(1000)}),
            (std::vector{text("a"), close_with(1000)}));
}

TEST_F(WebSocketClose, NothingAfterTheCloseIsLookedAt) {
  const std::vector<RawFrame> after{text("x"), ping("x"), close_with(1002), RawFrame{true, 7, 15, "junk"}};
  for (const RawFrame& frame : after) {
    WsTestServer echo;
    EXPECT_EQ(exchange(echo.port(), {close_with(1000), frame}), std::vector{close_with(1000)});
  }
}

TEST_F(WebSocketClose, ALongReasonIsAccepted) {
  const std::string reason(123, 'r');
  EXPECT_EQ(exchange(server.port(), {close_with(1000, reason)}), std::vector{close_with(1000)});
  EXPECT_EQ(end(), (End{1000, reason}));
}

TEST_F(WebSocketClose, TheStreamEndingWithoutACloseIs1006) {
  {
    RawClient client(server.port());
    client.send(text("a"));
    EXPECT_EQ(client.read(), text("a"));
  }
  EXPECT_EQ(end(), (End{1006, ""}));
}

TEST_F(WebSocketClose, TheStreamEndingInsideAFrameIs1006) {
  {
    RawClient client(server.port());
    client.write(encode(text("abcdef")).substr(0, 8));
    client.finish();
    EXPECT_TRUE(client.read_all().empty());
  }
  EXPECT_EQ(end().code, 1006);
}

TEST_F(WebSocketClose, TheServerSendsWhatIsQueuedThenItsCloseThenWaitsForThePeers) {
  RawClient client(server.port());
  client.send(text("close"));
  EXPECT_EQ(client.read(), text("last words"));
  EXPECT_EQ(client.read(), close_with(4001, "as asked"));
  client.send(text("dropped"));
  client.send(close_with(4001));
  EXPECT_EQ(client.read(), std::nullopt);
  EXPECT_EQ(end(), (End{4001, "as asked"}));
}

TEST_F(WebSocketClose, AHandlerThatThrowsCloses1011) {
  RawClient client(server.port());
  client.write(encode(text("a")) + encode(text("throw")) + encode(text("b")));
  EXPECT_EQ(client.read(), text("a"));
  EXPECT_EQ(code_of(client.read().value()), 1011);
  client.send(close_with(1011));
  EXPECT_EQ(client.read(), std::nullopt);
  EXPECT_EQ(end().code, 1011);
}

TEST_F(WebSocketClose, AProtocolErrorReachesTheHandlerWithItsCode) {
  exchange(server.port(), {RawFrame{true, 0, 3, ""}});
  EXPECT_EQ(end().code, 1002);
}

TEST(WebSocketCloseCodes, ThatAreDefinedOrRegisteredOrPrivateAreEchoed) {
  WsTestServer server;
  for (const int code :
       {1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999}) {
    const auto frame = close_with(static_cast<std::uint16_t>(code), "why");
    EXPECT_EQ(exchange(server.port(), {frame}), std::vector{close_with(static_cast<std::uint16_t>(code))});
  }
}

TEST(WebSocketCloseCodes, ThatMayNotBeSentAreRefused) {
  WsTestServer server;
  for (const int code : {0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535}) {
    for (const char* reason : {"", "reason"}) {
      const auto answered = exchange(server.port(), {close_with(static_cast<std::uint16_t>(code), reason)});
      ASSERT_EQ(answered.size(), 1U);
      EXPECT_EQ(code_of(answered[0]), 1002) << code;
    }
  }
}

TEST(WebSocketClosePayload, OfOneByteIsRefused) {
  WsTestServer server;
  const auto answered = exchange(server.port(), {RawFrame{true, 0, kClose, "\x03"}});
  ASSERT_EQ(answered.size(), 1U);
  EXPECT_EQ(code_of(answered[0]), 1002);
}

TEST(WebSocketClosePayload, WithAReasonThatIsNotUtf8IsRefusedHoweverItArrives) {
  WsTestServer server;
  for (const char* reason : {"\xff", "ok \xed\xa0\x80", "cut \xf0\x9f\x98", "\xc0\x80"}) {
    for (const std::size_t piece : {1UL, 2UL, 3UL, 1000UL}) {
      RawClient client(server.port());
      client.write_chopped(encode(close_with(1000, reason)), piece);
      const auto answered = client.read_all();
      ASSERT_EQ(answered.size(), 1U);
      EXPECT_EQ(code_of(answered[0]), 1007);
    }
  }
}

TEST(WebSocketClosePayload, WithValidUtf8IsAcceptedInPiecesOfAnySize) {
  WsTestServer server;
  for (std::size_t piece = 1; piece < 12; ++piece) {
    RawClient client(server.port());
    client.write_chopped(encode(close_with(1000, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80")), piece);
    EXPECT_EQ(client.read_all(), std::vector{close_with(1000)});
  }
}

TEST(WebSocketCloseTime, APeerThatNeverAnswersTheCloseIsCut) {
  WsOptions options;
  options.close_timeout = std::chrono::milliseconds(50);
  std::promise<End> ended;
  WsTestServer server(options, [&ended] { return std::make_shared<Observed>(ended); });
  RawClient client(server.port());
  client.send(text("close"));
  EXPECT_EQ(client.read(), text("last words"));
  EXPECT_EQ(client.read(), close_with(4001, "as asked"));
  EXPECT_EQ(client.read(), std::nullopt);
  EXPECT_EQ(await(ended.get_future()), (End{4001, "as asked"}));
}

}  // namespace
}  // namespace todoke::net

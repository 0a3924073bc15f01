// Framing, pings and pongs, reserved bits, opcodes, masking.
#include <gtest/gtest.h>

#include "echo_server.hpp"
#include "raw_client.hpp"

namespace todoke::net {
namespace {

const std::vector<std::size_t> kSizes{0, 1, 125, 126, 127, 128, 65535, 65536};

std::string letters(std::size_t size) {
  std::string text(size, ' ');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + i % 26);
  return text;
}

// What was answered before the close frame, and the code of that.
struct Ending {
  std::vector<RawFrame> before;
  std::uint16_t code = 0;
};

Ending ending_of(RawClient& client) {
  Ending ending;
  ending.before = client.read_all();
  if (!ending.before.empty()) {
    ending.code = code_of(ending.before.back());
    ending.before.pop_back();
  }
  return ending;
}

TEST(WebSocketFraming, EchoesMessagesOfEveryLengthForm) {
  WsTestServer server;
  for (const std::size_t size : kSizes) {
    for (const RawFrame& frame : {text(letters(size)), binary(std::string(size, '\xfe'))}) {
      RawClient client(server.port());
      client.send(frame);
      EXPECT_EQ(client.read(), frame);
    }
  }
}

TEST(WebSocketFraming, EchoesMessagesThatArriveInPiecesOfAnySize) {
  WsTestServer server;
  for (const std::size_t piece : {1UL, 2UL, 3UL, 997UL, 4096UL}) {
    RawClient client(server.port());
    for (const std::size_t size : kSizes) {
      if (piece < 997 && size > 1000) continue;
      client.write_chopped(encode(text(letters(size))), piece);
      EXPECT_EQ(client.read(), text(letters(size))) << size << " in pieces of " << piece;
    }
    client.write_chopped(encode(ping("p")) + encode(close_with(1000, "caf\xc3\xa9")), piece);
    EXPECT_EQ(client.read(), pong("p"));
    EXPECT_EQ(ending_of(client).code, 1000);
  }
}

TEST(WebSocketFraming, TakesManyMessagesFromOneSegmentInOrder) {
  WsTestServer server;
  RawClient client(server.port());
  std::string bytes;
  for (int i = 0; i < 2000; ++i) bytes += encode(text(std::to_string(i)));
  client.write(bytes);
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(client.read(), text(std::to_string(i)));
}

TEST(WebSocketFraming, RefusesLengthsThatAreNotInTheirShortestForm) {
  WsTestServer server;
  const std::vector<std::pair<std::size_t, int>> cases{{0, 2},   {125, 2}, {0, 8},
                                                       {125, 8}, {126, 8}, {65535, 8}};
  for (const auto& [size, form] : cases) {
    RawClient client(server.port());
    client.write(encode(text(letters(size)), Mask::with_key, form));
    EXPECT_EQ(ending_of(client).code, 1002) << size << " in " << form << " bytes";
  }
}

TEST(WebSocketFraming, RefusesALengthWithTheHighestBit) {
  WsTestServer server;
  RawClient client(server.port());
  client.write(std::string("\x82\xff\x80\x00\x00\x00\x00\x00\x00\x01\x01\x02\x03\x04", 14));
  EXPECT_EQ(ending_of(client).code, 1002);
}

TEST(WebSocketMasking, RefusesFramesWithoutMask) {
  WsTestServer server;
  for (const RawFrame& frame : {text("abc"), binary(""), ping(""), close_with(1000)}) {
    RawClient client(server.port());
    client.write(encode(frame, Mask::none));
    const Ending ending = ending_of(client);
    EXPECT_EQ(ending.code, 1002);
    EXPECT_TRUE(ending.before.empty());
  }
}

TEST(WebSocketMasking, TakesAKeyOfZeros) {
  WsTestServer server;
  RawClient client(server.port());
  client.write(
      std::string("\x81\x83\x00\x00\x00\x00"
                  "abc",
                  9));
  EXPECT_EQ(client.read(), text("abc"));
}

TEST(WebSocketPing, AnswersWithTheSamePayload) {
  WsTestServer server;
  RawClient client(server.port());
  for (const std::string& payload : {std::string(), std::string("hello"),
                                     std::string("\x00\xff\xfe\xfd\xfc\x00", 6), std::string(125, '\xfe')}) {
    client.send(ping(payload));
    EXPECT_EQ(client.read(), pong(payload));
    client.write_chopped(encode(ping(payload)), 1);
    EXPECT_EQ(client.read(), pong(payload));
  }
}

TEST(WebSocketPing, RefusesAPayloadOf126Bytes) {
  WsTestServer server;
  for (const std::uint8_t opcode : {kPing, kPong, kClose}) {
    RawClient client(server.port());
    client.send(RawFrame{true, 0, opcode, std::string(126, 'x')});
    const Ending ending = ending_of(client);
    EXPECT_EQ(ending.code, 1002);
    EXPECT_TRUE(ending.before.empty());
  }
}

TEST(WebSocketPing, IgnoresPongsThatNobodyAskedFor) {
  WsTestServer server;
  RawClient client(server.port());
  client.send(pong(""));
  client.send(pong("unsolicited"));
  client.send(ping("p"));
  EXPECT_EQ(client.read(), pong("p"));
  client.send(text("still here"));
  EXPECT_EQ(client.read(), text("still here"));
}

TEST(WebSocketPing, AnswersManyPingsInOrder) {
  WsTestServer server;
  for (const bool chopped : {false, true}) {
    RawClient client(server.port());
    std::string bytes;
    for (int i = 0; i < 500; ++i) bytes += encode(ping(std::to_string(i)));
    client.write_chopped(bytes, chopped ? 1 : bytes.size());
    for (int i = 0; i < 500; ++i) ASSERT_EQ(client.read(), pong(std::to_string(i)));
  }
}

TEST(WebSocketReservedBits, AreRefusedOnEveryFrame) {
  WsTestServer server;
  for (std::uint8_t rsv = 1; rsv <= 7; ++rsv) {
    for (const std::uint8_t opcode : {kText, kBinary, kPing, kPong, kClose}) {
      RawClient client(server.port());
      client.write(encode(text("before")) + encode(RawFrame{true, rsv, opcode, ""}) + encode(ping("after")));
      const Ending ending = ending_of(client);
      EXPECT_EQ(ending.code, 1002) << "rsv " << int{rsv} << ", opcode " << int{opcode};
      EXPECT_EQ(ending.before, std::vector<RawFrame>{text("before")});
    }
  }
}

TEST(WebSocketOpcodes, ThatAreNotDefinedAreRefused) {
  WsTestServer server;
  for (const int opcode : {3, 4, 5, 6, 7, 11, 12, 13, 14, 15}) {
    for (const std::string& payload : {std::string(), std::string("payload")}) {
      RawClient client(server.port());
      client.write(encode(text("before")) +
                   encode(RawFrame{true, 0, static_cast<std::uint8_t>(opcode), payload}) +
                   encode(ping("after")));
      const Ending ending = ending_of(client);
      EXPECT_EQ(ending.code, 1002) << "opcode " << opcode;
      EXPECT_EQ(ending.before, std::vector<RawFrame>{text("before")});
    }
  }
}

TEST(WebSocketFraming, TakesWhatCameTogetherWithTheHandshake) {
  WsTestServer server;
  RawClient client(server.port(), RawClient::NoHandshake());
  const std::string answer = client.request(std::string(kHandshake) + "\r\n" + encode(text("early")));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 101 "));
  EXPECT_EQ(client.read(), text("early"));
}

}  // namespace
}  // namespace todoke::net

#include <gtest/gtest.h>

#include "echo_server.hpp"
#include "raw_client.hpp"

namespace todoke::net {
namespace {

RawFrame start(std::string payload) {
  return {false, 0, kText, std::move(payload)};
}
RawFrame more(std::string payload) {
  return {false, 0, kContinuation, std::move(payload)};
}
RawFrame last(std::string payload) {
  return {true, 0, kContinuation, std::move(payload)};
}

struct Case {
  const char* name;
  std::vector<RawFrame> sent;
  std::vector<RawFrame> answered;  // before the close frame
  std::uint16_t code;              // 1000: the case ends with a close of its own
};

const RawFrame kBye = close_with(1000);

const std::vector<Case> kCases{
    {"two fragments", {start("frag1"), last("frag2"), kBye}, {text("frag1frag2")}, 1000},
    {"empty fragments", {start(""), more(""), last(""), kBye}, {text("")}, 1000},
    {"an empty one in the middle", {start("a"), more(""), last("b"), kBye}, {text("ab")}, 1000},
    {"content in the last alone", {start(""), more(""), last("x"), kBye}, {text("x")}, 1000},
    {"a ping between fragments", {start("a"), ping("p"), last("b"), kBye}, {pong("p"), text("ab")}, 1000},
    {"pings between all fragments",
     {start("a"), ping("1"), more("b"), ping("2"), last("c"), kBye},
     {pong("1"), pong("2"), text("abc")},
     1000},
    {"a pong between fragments", {start("a"), pong("p"), last("b"), kBye}, {text("ab")}, 1000},
    {"two fragmented messages",
     {start("a"), last("b"), start("c"), last("d"), kBye},
     {text("ab"), text("cd")},
     1000},
    {"a close between fragments", {start("a"), kBye, last("b")}, {}, 1000},
    {"binary fragments", {{false, 0, kBinary, "\xff"}, last("\xfe"), kBye}, {binary("\xff\xfe")}, 1000},

    {"a fragmented ping", {{false, 0, kPing, "a"}, last("b")}, {}, 1002},
    {"a fragmented pong", {{false, 0, kPong, "a"}, last("b")}, {}, 1002},
    {"a fragmented close", {{false, 0, kClose, ""}, last("")}, {}, 1002},
    {"a last fragment without start", {last("x")}, {}, 1002},
    {"a middle fragment without start", {more("x")}, {}, 1002},
    {"an empty continuation without start", {last("")}, {}, 1002},
    {"a continuation after a whole message", {text("a"), last("b")}, {text("a")}, 1002},
    {"a continuation after the last fragment", {start("a"), last("b"), more("c")}, {text("ab")}, 1002},
    {"a text inside a message", {start("a"), text("b")}, {}, 1002},
    {"a binary inside a message", {start("a"), binary("b")}, {}, 1002},
    {"a start inside a message", {start("a"), start("b")}, {}, 1002},
    {"reserved bits on a continuation", {start("a"), {true, 2, kContinuation, "b"}}, {}, 1002},
};

TEST(WebSocketFragmentation, AnswersEveryCaseAsTheProtocolAsks) {
  WsTestServer server;
  for (const Case& c : kCases) {
    for (const std::size_t piece : {1UL, 1000UL}) {
      RawClient client(server.port());
      std::string bytes;
      for (const RawFrame& frame : c.sent) bytes += encode(frame);
      client.write_chopped(bytes, piece);
      auto answered = client.read_all();
      ASSERT_FALSE(answered.empty()) << c.name;
      EXPECT_EQ(code_of(answered.back()), c.code) << c.name;
      answered.pop_back();
      // A pong may overtake a message that is queued but not one that was sent; pieces keep the order of the
      // case.
      EXPECT_EQ(answered.size(), c.answered.size()) << c.name;
      for (const RawFrame& frame : c.answered) {
        EXPECT_NE(std::find(answered.begin(), answered.end(), frame), answered.end()) << c.name;
      }
    }
  }
}

TEST(WebSocketFragmentation, PutsManySmallFragmentsTogether) {
  WsTestServer server;
  RawClient client(server.port());
  std::string whole;
  std::string bytes = encode(start(""));
  for (int i = 0; i < 20'000; ++i) {
    const std::string piece(1, static_cast<char>('a' + i % 26));
    whole += piece;
    bytes += encode(more(piece));
    if (i % 1000 == 0) bytes += encode(ping(std::to_string(i)));
  }
  client.write(bytes + encode(last("")));
  for (int i = 0; i < 20'000; i += 1000) ASSERT_EQ(client.read(), pong(std::to_string(i)));
  EXPECT_EQ(client.read(), text(whole));
}

}  // namespace
}  // namespace todoke::net

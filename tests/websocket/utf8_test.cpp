#include <gtest/gtest.h>

#include "echo_server.hpp"
#include "raw_client.hpp"

namespace todoke::net {
namespace {

const std::vector<std::string> kValid{
    "",
    "Hello-\xc2\xb5@\xc3\x9f\xc3\xb6\xc3\xa4\xc3\xbc\xc3\xa0\xc3\xa1-UTF-8!!",
    "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5",
    std::string("\x00", 1),
    "\x7f",
    "\xc2\x80",          // U+0080
    "\xdf\xbf",          // U+07FF
    "\xe0\xa0\x80",      // U+0800
    "\xed\x9f\xbf",      // U+D7FF, before the surrogates
    "\xee\x80\x80",      // U+E000, after them
    "\xef\xbf\xbd",      // U+FFFD
    "\xef\xbf\xbe",      // U+FFFE: no character, but a code point
    "\xef\xbf\xbf",      // U+FFFF
    "\xf0\x90\x80\x80",  // U+10000
    "\xf0\x9f\xbf\xbf",  // U+1FFFF
    "\xf3\xbf\xbf\xbf",  // U+FFFFF
    "\xf4\x8f\xbf\xbf",  // U+10FFFF, the last
    "\xf0\x9f\x98\x80"
    "abc"
    "\xf0\x9f\x98\x80",
};

const std::vector<std::string> kInvalid{
    "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80"
    "edited",  // a surrogate inside text
    "\x80",    // a continuation byte alone
    "\xbf",
    "abc\x80"
    "def",
    "\xc0\x80",  // overlong forms of U+0000
    "\xe0\x80\x80",
    "\xf0\x80\x80\x80",
    "\xf8\x80\x80\x80\x80",
    "\xfc\x80\x80\x80\x80\x80",
    "\xc1\xbf",                  // overlong: U+007F
    "\xe0\x9f\xbf",              // overlong: U+07FF
    "\xf0\x8f\xbf\xbf",          // overlong: U+FFFF
    "\xed\xa0\x80",              // U+D800
    "\xed\xad\xbf",              // U+DB7F
    "\xed\xae\x80",              // U+DB80
    "\xed\xaf\xbf",              // U+DBFF
    "\xed\xb0\x80",              // U+DC00
    "\xed\xbf\xbf",              // U+DFFF
    "\xed\xa0\x80\xed\xb0\x80",  // a pair of surrogates
    "\xf4\x90\x80\x80",          // U+110000
    "\xf5\x80\x80\x80",
    "\xf7\xbf\xbf\xbf",
    "\xfe",
    "\xff",
    "\xfe\xfe\xff\xff",
    "\xc2",  // cut off
    "\xdf",
    "\xe0\xa0",
    "\xe1\x80",
    "\xf0\x90\x80",
    "\xf1\x80\x80",
    "\xf4\x8f\xbf",
    "abc\xf0\x9f\x98",
    "\xc2\x41",  // a letter where a continuation byte belongs
    "\xe1\x80\x41",
    "\xf1\x80\x80\x41",
};

std::string in_fragments(const std::string& payload, std::size_t size) {
  std::string bytes = encode(RawFrame{false, 0, kText, payload.substr(0, size)});
  for (std::size_t at = size; at < payload.size(); at += size) {
    bytes += encode(RawFrame{false, 0, kContinuation, payload.substr(at, size)});
  }
  return bytes + encode(RawFrame{true, 0, kContinuation, ""});
}

TEST(WebSocketUtf8, ValidTextIsEchoedHoweverItIsCut) {
  WsTestServer server;
  RawClient client(server.port());
  for (const std::string& payload : kValid) {
    client.send(text(payload));
    EXPECT_EQ(client.read(), text(payload));
    client.write_chopped(encode(text(payload)), 1);
    EXPECT_EQ(client.read(), text(payload));
    for (const std::size_t size : {1UL, 2UL, 3UL}) {
      client.write(in_fragments(payload, size));
      EXPECT_EQ(client.read(), text(payload));
    }
  }
}

TEST(WebSocketUtf8, InvalidTextIsRefusedHoweverItIsCut) {
  WsTestServer server;
  for (const std::string& payload : kInvalid) {
    const std::vector<std::string> forms{encode(text(payload)), in_fragments(payload, 1),
                                         in_fragments(payload, 2), in_fragments(payload, 3)};
    for (const std::string& bytes : forms) {
      RawClient client(server.port());
      client.write(bytes);
      const auto answered = client.read_all();
      ASSERT_EQ(answered.size(), 1U) << testing::PrintToString(payload);
      EXPECT_EQ(code_of(answered[0]), 1007) << testing::PrintToString(payload);
    }
  }
}

TEST(WebSocketUtf8, TheSameBytesAreWelcomeAsBinary) {
  WsTestServer server;
  RawClient client(server.port());
  for (const std::string& payload : kInvalid) {
    client.send(binary(payload));
    EXPECT_EQ(client.read(), binary(payload));
  }
}

TEST(WebSocketUtf8, InvalidTextIsRefusedBeforeTheMessageIsComplete) {
  WsTestServer server;
  {
    RawClient client(server.port());
    client.send(RawFrame{false, 0, kText, "good"});
    client.send(RawFrame{false, 0, kContinuation, "\xf4\x90"});
    EXPECT_EQ(code_of(client.read().value()), 1007);
  }
  {
    // Inside one frame, of which the rest never comes.
    RawClient client(server.port());
    client.write(encode(text("good\xed\xa0\x80 and more that is not sent")).substr(0, 6 + 7));
    EXPECT_EQ(code_of(client.read().value()), 1007);
  }
}

TEST(WebSocketUtf8, APingInsideACodePointDoesNotDisturbIt) {
  WsTestServer server;
  RawClient client(server.port());
  client.send(RawFrame{false, 0, kText, "\xf0\x9f"});
  client.send(ping("\xff"));
  EXPECT_EQ(client.read(), pong("\xff"));
  client.send(RawFrame{true, 0, kContinuation, "\x98\x80"});
  EXPECT_EQ(client.read(), text("\xf0\x9f\x98\x80"));
}

}  // namespace
}  // namespace todoke::net

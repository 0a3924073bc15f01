// permessage-deflate on the wire. The negotiation's own table is in src/net/deflate_test.cpp.
#include <random>

#include <gtest/gtest.h>

#include "echo_server.hpp"
#include "net/deflate.hpp"
#include "raw_client.hpp"

namespace todoke::net {
namespace {

constexpr std::uint8_t kRsv1 = 4;

WsOptions large() {
  WsOptions options;
  options.message_bytes_max = 256 * 1024;
  options.compress_bytes_min = 0;
  return options;
}

RawFrame compressed(const RawFrame& frame) {
  return {true, kRsv1, frame.opcode, deflate_message(frame.payload)};
}

// What the server meant, compressed or not.
RawFrame plain(const RawFrame& frame) {
  if (frame.rsv != kRsv1) return frame;
  std::string payload;
  EXPECT_EQ(inflate_message(frame.payload, 1024 * 1024, payload), Inflated::ok);
  return {frame.fin, 0, frame.opcode, payload};
}

std::string json_like(std::size_t size) {
  std::string out;
  for (int i = 0; out.size() < size; ++i) out += "{\"id\":" + std::to_string(i) + ",\"kind\":1,\"tags\":[]},";
  out.resize(size);
  return out;
}

std::string noise(std::size_t size) {
  std::mt19937 random(7);
  std::string out(size, '\0');
  for (char& c : out) c = static_cast<char>(random());
  return out;
}

std::string encode_in_fragments(const RawFrame& whole, std::size_t size) {
  std::string bytes;
  for (std::size_t at = 0; at == 0 || at < whole.payload.size(); at += size) {
    const bool first = at == 0;
    const bool final = at + size >= whole.payload.size();
    bytes += encode(RawFrame{final, first ? whole.rsv : std::uint8_t{0}, first ? whole.opcode : kContinuation,
                             whole.payload.substr(at, size)});
    bytes += encode(pong("between"));
  }
  return bytes;
}

std::uint16_t only_code(std::uint16_t port, const std::vector<RawFrame>& frames,
                        std::string_view extensions) {
  const auto answered = exchange(port, frames, extensions);
  return answered.size() == 1 ? code_of(answered[0]) : std::uint16_t{0};
}

TEST(WebSocketCompression, RoundTripsEverySizeAndContent) {
  WsTestServer server(large());
  RawClient client(server.port(), "permessage-deflate");
  for (const std::size_t size : {0UL, 1UL, 2UL, 16UL, 64UL, 125UL, 126UL, 256UL, 1024UL, 4096UL, 8192UL,
                                 16384UL, 32768UL, 65535UL, 65536UL, 131072UL}) {
    for (const RawFrame& frame :
         {text(json_like(size)), binary(noise(size)), binary(std::string(size, '\0'))}) {
      client.send(compressed(frame));
      ASSERT_EQ(plain(client.read().value()), frame) << size;
      client.send(frame);
      ASSERT_EQ(plain(client.read().value()), frame) << size << ", sent without compression";
    }
  }
}

TEST(WebSocketCompression, IsUsedForWhatItMakesShorterAndLongerThanTheMinimum) {
  WsOptions options;
  options.compress_bytes_min = 256;
  WsTestServer server(options);
  RawClient client(server.port(), "permessage-deflate");
  client.send(text(json_like(1000)));
  EXPECT_EQ(client.read().value().rsv, kRsv1);
  client.send(text(json_like(255)));
  EXPECT_EQ(client.read(), text(json_like(255)));
  client.send(binary(noise(1000)));
  EXPECT_EQ(client.read(), binary(noise(1000)));
}

TEST(WebSocketCompression, EveryMessageStandsAlone) {
  WsTestServer server(large());
  RawClient client(server.port(), "permessage-deflate");
  std::string first;
  for (int i = 0; i < 5; ++i) {
    client.send(compressed(text(json_like(2000))));
    const RawFrame frame = client.read().value();
    if (i == 0) first = frame.payload;
    EXPECT_EQ(frame.payload, first) << "the same text must give the same bytes";
  }
}

TEST(WebSocketCompression, EveryFormOfTheOfferWorks) {
  WsTestServer server(large());
  for (const char* offer :
       {"permessage-deflate", "permessage-deflate; client_no_context_takeover",
        "permessage-deflate; server_no_context_takeover", "permessage-deflate; client_max_window_bits",
        "permessage-deflate; client_max_window_bits=9; server_max_window_bits=15",
        "permessage-deflate; server_no_context_takeover; client_no_context_takeover; "
        "client_max_window_bits=\"15\"",
        "x-webkit-deflate-frame, permessage-deflate; server_max_window_bits=8, permessage-deflate"}) {
    RawClient client(server.port(), offer);
    EXPECT_NE(client.handshake_answer().find(
                  "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; "
                  "client_no_context_takeover"),
              std::string::npos)
        << offer;
    client.send(compressed(text(json_like(3000))));
    EXPECT_EQ(plain(client.read().value()), text(json_like(3000))) << offer;
  }
}

TEST(WebSocketCompression, IsNotAgreedToWhenItIsSwitchedOff) {
  WsOptions options;
  options.compression = false;
  WsTestServer server(options);
  RawClient client(server.port(), "permessage-deflate");
  EXPECT_EQ(client.handshake_answer().find("Sec-WebSocket-Extensions"), std::string::npos);
  client.send(compressed(text("abc")));
  EXPECT_EQ(code_of(client.read().value()), 1002);
}

TEST(WebSocketCompression, WorksOnFragmentsOfAnySize) {
  WsTestServer server(large());
  for (const std::size_t size : {1UL, 7UL, 256UL, 5000UL}) {
    RawClient client(server.port(), "permessage-deflate");
    for (const RawFrame& frame : {text(json_like(20'000)), text(""), binary(noise(6000))}) {
      client.write(encode_in_fragments(compressed(frame), size));
      EXPECT_EQ(plain(client.read().value()), frame) << size;
    }
  }
}

TEST(WebSocketCompression, TakesFinalBlocksAndSeveralBlocks) {
  WsTestServer server(large());
  RawClient client(server.port(), "permessage-deflate");
  // The examples of RFC 7692, 7.2.3: one block, a stored block, a final block, two blocks.
  for (const std::string& payload :
       {std::string("\xf2\x48\xcd\xc9\xc9\x07\x00", 7),
        std::string("\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00", 11),
        std::string("\xf3\x48\xcd\xc9\xc9\x07\x00\x00", 8),
        std::string("\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00", 13)}) {
    client.send(RawFrame{true, kRsv1, kText, payload});
    EXPECT_EQ(plain(client.read().value()), text("Hello"));
  }
}

TEST(WebSocketCompression, TheReservedBitBelongsToTheFirstDataFrameAlone) {
  WsTestServer server(large());
  const RawFrame start{false, kRsv1, kText, deflate_message("abc").substr(0, 2)};
  const std::string_view offer = "permessage-deflate";
  EXPECT_EQ(only_code(server.port(), {start, RawFrame{true, kRsv1, kContinuation, "x"}}, offer), 1002);
  EXPECT_EQ(only_code(server.port(), {RawFrame{true, kRsv1, kPing, ""}}, offer), 1002);
  EXPECT_EQ(only_code(server.port(), {RawFrame{true, kRsv1, kClose, ""}}, offer), 1002);
  EXPECT_EQ(only_code(server.port(), {RawFrame{true, 6, kText, "x"}}, offer), 1002);
  EXPECT_EQ(only_code(server.port(), {compressed(text("abc"))}, ""), 1002) << "nothing was agreed on";
}

TEST(WebSocketCompression, GarbageAndCutOffDataAreRefused) {
  WsTestServer server(large());
  const std::string whole = deflate_message(json_like(5000));
  for (const std::string& payload : {std::string("\xff\xff\xff\xff"), std::string("\x06\x00", 2), noise(500),
                                     whole.substr(0, whole.size() / 2), whole.substr(0, whole.size() - 2)}) {
    EXPECT_EQ(only_code(server.port(), {RawFrame{true, kRsv1, kBinary, payload}}, "permessage-deflate"),
              1007);
  }
}

TEST(WebSocketCompression, TextIsCheckedAfterInflation) {
  WsTestServer server(large());
  EXPECT_EQ(only_code(server.port(), {compressed(text("abc\xed\xa0\x80"))}, "permessage-deflate"), 1007);
  EXPECT_EQ(only_code(server.port(), {compressed(text("cut off \xf0\x9f"))}, "permessage-deflate"), 1007);
  RawClient client(server.port(), "permessage-deflate");
  client.send(compressed(binary("abc\xed\xa0\x80")));
  EXPECT_EQ(plain(client.read().value()), binary("abc\xed\xa0\x80"));
}

TEST(WebSocketCompression, ABombIsStoppedAtTheLimit) {
  WsTestServer server(large());
  const RawFrame bomb = compressed(binary(std::string(64 * 1024 * 1024, '\0')));
  ASSERT_LT(bomb.payload.size(), large().message_bytes_max * 2);
  const RawFrame small_bomb = compressed(binary(std::string(large().message_bytes_max + 1, '\0')));
  EXPECT_EQ(only_code(server.port(), {bomb}, "permessage-deflate"), 1009);
  EXPECT_EQ(only_code(server.port(), {small_bomb}, "permessage-deflate"), 1009);
  RawClient client(server.port(), "permessage-deflate");
  const RawFrame allowed = binary(std::string(large().message_bytes_max, '\0'));
  client.send(compressed(allowed));
  EXPECT_EQ(plain(client.read().value()), allowed);
  const RawFrame noisy = binary(noise(large().message_bytes_max));
  client.send(compressed(noisy));
  EXPECT_EQ(plain(client.read().value()), noisy)
      << "what deflate makes longer is measured as what it stands for";
}

}  // namespace
}  // namespace todoke::net

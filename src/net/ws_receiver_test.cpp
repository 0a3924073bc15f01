#include "net/ws_receiver.hpp"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace todoke::net {
namespace {

constexpr std::size_t kBytesMax = 10'000;

// What a receiver tells about a stream, in words.
std::vector<std::string> story(std::string_view stream, std::size_t piece, WsRole role = WsRole::server) {
  WsReceiver receiver(role, WsAgreement{true}, kBytesMax);
  std::vector<std::string> told;
  while (!stream.empty()) {
    const std::string bytes(stream.substr(0, piece));
    stream.remove_prefix(bytes.size());
    receiver.give(bytes);
    for (WsEvent event = receiver.next(); event.kind != WsEvent::Kind::starved; event = receiver.next()) {
      told.push_back(std::to_string(static_cast<int>(event.kind)) + " " + std::to_string(event.code) + " " +
                     std::string(event.payload));
    }
  }
  return told;
}

// A stream of frames of all kinds, some of them wrong, as a seed gives it.
std::string random_stream(std::mt19937& random) {
  const auto below = [&random](unsigned limit) { return static_cast<unsigned>(random() % limit); };
  std::string stream;
  for (unsigned frames = 1 + below(12); frames > 0; --frames) {
    std::string payload(below(4) == 0 ? below(9000) : below(60), 'a');
    if (below(20) == 0 && !payload.empty()) payload[below(static_cast<unsigned>(payload.size()))] = '\xff';
    const unsigned kind = below(20);
    if (kind < 6) {
      stream += masked_frame(kind % 2 == 0 ? WsOpcode::text : WsOpcode::binary, payload, below(2) == 0);
    } else if (kind < 10) {
      append_frame(stream, kind % 2 == 0 ? 0x01 : 0x02, payload, Masking::random);
    } else if (kind < 14) {
      append_frame(stream, below(2) == 0 ? 0x00 : 0x80, payload, Masking::random);
    } else if (kind < 18) {
      stream += control_frame(kind % 2 == 0 ? WsControl::ping : WsControl::pong, payload.substr(0, 100),
                              Masking::random);
    } else if (kind == 18) {
      stream += close_frame(static_cast<std::uint16_t>(990 + below(30)), "bye \xc3\xa9", Masking::random);
    } else {
      append_frame(stream, static_cast<std::uint8_t>(below(256)), payload, Masking::random);
    }
  }
  return stream;
}

TEST(WsReceiver, TellsTheSameStoryHoweverTheBytesAreCut) {
  std::mt19937 random(20'250'101);
  for (int round = 0; round < 300; ++round) {
    const std::string stream = random_stream(random);
    const auto whole = story(stream, stream.size());
    for (const std::size_t piece : {1UL, 2UL, 3UL, 1024UL, 4096UL, 5000UL}) {
      ASSERT_EQ(story(stream, piece), whole) << "round " << round << ", pieces of " << piece;
    }
  }
}

TEST(WsReceiver, NothingFollowsACloseOrAFailure) {
  const std::string close = close_frame(1000, "", Masking::random);
  const std::string message = masked_frame(WsOpcode::text, "x", false);
  EXPECT_EQ(story(message + close + message, 1000).size(), 2U);
  EXPECT_EQ(story(std::string("\x83\x80\x01\x02\x03\x04", 6) + message, 1000).size(), 1U);
}

TEST(WsReceiver, IsInsideFromTheFirstByteOfAFrameToTheLastOfItsMessage) {
  WsReceiver receiver(WsRole::server, WsAgreement{true}, kBytesMax * 10);
  for (const std::size_t size : {0UL, 1UL, 125UL, 126UL, 65'535UL, 65'536UL}) {
    std::string message;
    append_frame(message, 0x02, std::string(size, 'm'), Masking::random);  // without FIN
    append_frame(message, 0x80, "", Masking::random);
    const std::string stream = control_frame(WsControl::ping, "p", Masking::random) + message;
    const std::size_t ping_bytes = stream.size() - message.size();
    for (std::size_t at = 0; at < stream.size(); ++at) {
      receiver.give(std::string_view(stream).substr(at, 1));
      while (receiver.next().kind != WsEvent::Kind::starved) {
      }
      ASSERT_EQ(receiver.is_inside(), at + 1 != ping_bytes && at + 1 != stream.size())
          << size << " bytes, at " << at;
    }
    receiver.give(stream);
    while (receiver.next().kind != WsEvent::Kind::starved) {
    }
    EXPECT_FALSE(receiver.is_inside());
  }
}

TEST(WsReceiver, KeepsNothingOfAMessageThatWasHandledOrAbandoned) {
  WsReceiver receiver(WsRole::server, WsAgreement{true}, kBytesMax);
  std::string begun;
  append_frame(begun, 0x01, std::string(5'000, 'm'), Masking::random);  // without FIN
  const auto give_all = [&receiver](std::string_view bytes) {
    receiver.give(bytes);
    return receiver.next().kind;
  };
  EXPECT_EQ(give_all(begun), WsEvent::Kind::starved);
  EXPECT_GE(receiver.held_bytes(), 5'000U);
  std::string end;
  append_frame(end, 0x80, "", Masking::random);
  EXPECT_EQ(give_all(end), WsEvent::Kind::message);
  receiver.forget_message();
  EXPECT_EQ(receiver.held_bytes(), 0U);
  const auto small = masked_frame(WsOpcode::text, std::string(9'000, ' '), true);
  EXPECT_EQ(give_all(small), WsEvent::Kind::message);
  EXPECT_GE(receiver.held_bytes(), 9'000U) << "after inflation";
  receiver.forget_message();
  EXPECT_EQ(receiver.held_bytes(), 0U);
  EXPECT_EQ(give_all(begun), WsEvent::Kind::starved);
  receiver.abandon();
  EXPECT_EQ(receiver.held_bytes(), 0U);
  EXPECT_FALSE(receiver.is_inside());
  EXPECT_EQ(give_all(end + small), WsEvent::Kind::starved);
}

TEST(WsReceiver, HeadersOfAMessageHaveTheLimitOfItsBytes) {
  std::string stream;
  append_frame(stream, 0x01, "m", Masking::random);
  const std::size_t header = stream.size() - 1;
  for (std::size_t bytes = header; bytes + header <= kBytesMax; bytes += header)
    append_frame(stream, 0x00, "", Masking::random);
  EXPECT_TRUE(story(stream, 1'000).empty());
  std::string more = stream;
  append_frame(more, 0x80, "", Masking::random);
  EXPECT_EQ(story(more, 1'000), std::vector<std::string>{"5 1009 message of too many frames"});
  std::string next = masked_frame(WsOpcode::text, "a", false);
  next += masked_frame(WsOpcode::text, "b", false);
  EXPECT_EQ(story(next, 1'000).size(), 2U) << "each message has its own";
}

TEST(WsReceiver, AClientRefusesMaskedFramesAndTakesPlainOnes) {
  const std::string masked = masked_frame(WsOpcode::text, "x", false);
  EXPECT_EQ(story(masked, 1000, WsRole::client), std::vector<std::string>{"5 1002 a server must not mask"});
  EXPECT_EQ(story(make_frame(WsOpcode::text, "x")->plain(), 1000, WsRole::client),
            std::vector<std::string>{"1 0 x"});
}

}  // namespace
}  // namespace todoke::net

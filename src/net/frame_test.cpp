#include "net/frame.hpp"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "net/deflate.hpp"

namespace todoke::net {
namespace {

TEST(SharedFrame, HasTheShortestHeaderForItsLength) {
  EXPECT_EQ(make_frame(WsOpcode::text, "abc")->plain(),
            "\x81\x03"
            "abc");
  EXPECT_EQ(make_frame(WsOpcode::binary, "")->plain(), std::string_view("\x82\x00", 2));
  EXPECT_EQ(make_frame(WsOpcode::text, std::string(125, 'x'))->plain().substr(0, 2), "\x81\x7d");
  EXPECT_EQ(make_frame(WsOpcode::text, std::string(126, 'x'))->plain().substr(0, 4),
            std::string_view("\x81\x7e\x00\x7e", 4));
  EXPECT_EQ(make_frame(WsOpcode::text, std::string(65535, 'x'))->plain().substr(0, 4), "\x81\x7e\xff\xff");
  EXPECT_EQ(make_frame(WsOpcode::text, std::string(65536, 'x'))->plain().substr(0, 10),
            std::string_view("\x81\x7f\x00\x00\x00\x00\x00\x01\x00\x00", 10));
  EXPECT_EQ(make_frame(WsOpcode::text, std::string(65536, 'x'))->payload(), std::string(65536, 'x'));
}

TEST(SharedFrame, CompressedFormInflatesToThePayload) {
  const auto frame = make_frame(WsOpcode::text, std::string(1000, 'x'));
  const auto compressed = frame->compressed();
  ASSERT_LT(compressed.size(), 125U);
  EXPECT_EQ(compressed[0], '\xc1');
  std::string out;
  EXPECT_EQ(inflate_message(compressed.substr(2), 1000, out), Inflated::ok);
  EXPECT_EQ(out, frame->payload());
}

TEST(SharedFrame, StaysPlainWhereCompressionDoesNotHelp) {
  const auto frame = make_frame(WsOpcode::text, "abc");
  EXPECT_EQ(frame->compressed().data(), frame->plain().data());
}

TEST(SharedFrame, ThreadsGetTheSameCompressedForm) {
  const auto frame = make_frame(WsOpcode::text, std::string(100'000, 'x'));
  std::vector<std::string_view> forms(4);
  std::vector<std::thread> threads;
  for (auto& form : forms) threads.emplace_back([&form, frame] { form = frame->compressed(); });
  for (auto& thread : threads) thread.join();
  for (const auto& form : forms) EXPECT_EQ(form.data(), forms[0].data());
}

TEST(CloseFrame, CutsAReasonBetweenCodePoints) {
  const std::string reason = std::string(122, 'r') + "\xc3\xa9";
  const std::string frame = close_frame(1000, reason, Masking::none);
  EXPECT_EQ(frame, "\x88\x7c\x03\xe8" + std::string(122, 'r'));
  EXPECT_EQ(close_frame(0, "ignored", Masking::none), std::string("\x88\x00", 2));
}

TEST(MaskedFrame, UnmasksToThePayloadAndUsesFreshKeys) {
  const std::string frame = masked_frame(WsOpcode::text, "hello", false);
  ASSERT_EQ(frame.size(), 2U + 4U + 5U);
  EXPECT_EQ(frame.substr(0, 2), "\x81\x85");
  std::string payload;
  for (std::size_t i = 0; i < 5; ++i) payload.push_back(static_cast<char>(frame[6 + i] ^ frame[2 + i % 4]));
  EXPECT_EQ(payload, "hello");
  EXPECT_NE(masked_frame(WsOpcode::text, "hello", false), masked_frame(WsOpcode::text, "hello", false));
}

TEST(CloseCode, FollowsTheRfcAndTheRegistry) {
  for (const int code : {1000, 1003, 1007, 1011, 1012, 1014, 3000, 4999})
    EXPECT_TRUE(is_close_code(static_cast<std::uint16_t>(code)));
  for (const int code : {0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000})
    EXPECT_FALSE(is_close_code(static_cast<std::uint16_t>(code)));
}

}  // namespace
}  // namespace todoke::net

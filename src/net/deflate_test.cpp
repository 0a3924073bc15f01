#include "net/deflate.hpp"

#include <gtest/gtest.h>

namespace todoke::net {
namespace {

const std::string kAnswer = "permessage-deflate; server_no_context_takeover; client_no_context_takeover";

// "declined", "refused", or the answer.
std::string outcome(std::string_view offers) {
  const auto accepted = accept_deflate(offers);
  if (!accepted) return "refused";
  return accepted->value_or("declined");
}

TEST(DeflateOffer, IsAcceptedInEveryFormThatCanBeServed) {
  for (const char* offer : {
           "permessage-deflate",
           "  permessage-deflate ",
           "permessage-deflate;client_max_window_bits",
           "permessage-deflate; client_max_window_bits=8",
           "permessage-deflate; client_max_window_bits=\"10\"",
           "permessage-deflate; client_max_window_bits=\"1\\0\"",
           "permessage-deflate; server_no_context_takeover; client_no_context_takeover",
           "foo, bar; baz=1, permessage-deflate",
           "permessage-deflate; unknown, permessage-deflate",
           "permessage-deflate; server_max_window_bits=10, permessage-deflate",
       }) {
    EXPECT_EQ(outcome(offer), kAnswer) << offer;
  }
  EXPECT_EQ(outcome("permessage-deflate; server_max_window_bits=15"),
            kAnswer + "; server_max_window_bits=15");
}

TEST(DeflateOffer, IsDeclinedWhenItCanNotBeServed) {
  for (const char* offer : {
           "",
           "x-webkit-deflate-frame",
           "permessage-bzip2",
           "permessage-deflate; unknown",
           "permessage-deflate; unknown=1",
           "permessage-deflate; server_no_context_takeover=1",
           "permessage-deflate; client_no_context_takeover=\"true\"",
           "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
           "permessage-deflate; client_no_context_takeover; client_no_context_takeover",
           "permessage-deflate; client_max_window_bits; client_max_window_bits=10",
           "permessage-deflate; server_max_window_bits=15; server_max_window_bits=15",
           "permessage-deflate; server_max_window_bits",
           "permessage-deflate; server_max_window_bits=14",
           "permessage-deflate; server_max_window_bits=8",
           "permessage-deflate; server_max_window_bits=16",
           "permessage-deflate; server_max_window_bits=015",
           "permessage-deflate; client_max_window_bits=7",
           "permessage-deflate; client_max_window_bits=16",
           "permessage-deflate; client_max_window_bits=08",
           "permessage-deflate; client_max_window_bits=abc",
       }) {
    EXPECT_EQ(outcome(offer), "declined") << offer;
  }
}

TEST(DeflateOffer, IsRefusedWhenItIsNoList) {
  std::string many = "a";
  for (int i = 0; i < 100; ++i) many += ", a";
  for (const std::string& offer :
       {std::string(","), std::string("permessage-deflate;"), std::string("permessage-deflate; =1"),
        std::string(";"), std::string("permessage-deflate; a=\"open"),
        std::string("permessage-deflate; a=\"\""), std::string("permessage-deflate; a=\"b c\""),
        std::string("permessage-deflate; a="), std::string("permessage-deflate b"),
        std::string("permessage-deflate; a=\"x\\"), many}) {
    EXPECT_EQ(outcome(offer), "refused") << offer;
  }
}

TEST(DeflateAnswer, AgreesOnlyToWhatWasOffered) {
  EXPECT_EQ(deflate_agreed("").value(), false);
  EXPECT_EQ(deflate_agreed(kAnswer).value(), true);
  EXPECT_EQ(deflate_agreed("permessage-deflate; server_no_context_takeover").value(), true);
  EXPECT_EQ(deflate_agreed(kAnswer + "; server_max_window_bits=10").value(), true);
  for (const std::string& answer :
       {std::string("permessage-deflate"), std::string("other"), kAnswer + ", " + kAnswer,
        kAnswer + "; unknown", kAnswer + "; client_max_window_bits=10", kAnswer + "; client_max_window_bits",
        kAnswer + ";"}) {
    EXPECT_FALSE(deflate_agreed(answer)) << answer;
  }
}

TEST(Deflate, LeavesTheTailOffAndComesBack) {
  EXPECT_EQ(deflate_message("").size(), 1U);
  const std::string compressed = deflate_message(std::string(100'000, 'x'));
  EXPECT_LT(compressed.size(), 1000U);
  EXPECT_FALSE(compressed.ends_with(std::string("\x00\x00\xff\xff", 4)));
  std::string out = "replaced";
  EXPECT_EQ(inflate_message(compressed, 100'000, out), Inflated::ok);
  EXPECT_EQ(out, std::string(100'000, 'x'));
}

TEST(Inflate, StopsAtTheLimitAndIsUsableAfterwards) {
  std::string out;
  EXPECT_EQ(inflate_message(deflate_message(std::string(100'000, 'x')), 99'999, out), Inflated::too_big);
  EXPECT_LE(out.size(), 99'999U);
  EXPECT_EQ(inflate_message("\xff\xff", 1000, out), Inflated::invalid);
  EXPECT_EQ(inflate_message(deflate_message("abc"), 3, out), Inflated::ok);
  EXPECT_EQ(out, "abc");
}

TEST(Inflate, DoesNotRememberTheMessageBefore) {
  std::string out;
  ASSERT_EQ(inflate_message(deflate_message("remember this"), 100, out), Inflated::ok);
  // A copy of 3 bytes from 5 back: points before the start of this message.
  EXPECT_EQ(inflate_message(std::string("\x03\x22\x00", 3), 100, out), Inflated::invalid);
}

}  // namespace
}  // namespace todoke::net

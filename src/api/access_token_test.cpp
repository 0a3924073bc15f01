#include "api/access_token.hpp"

#include <gtest/gtest.h>

#include "base/base64.hpp"
#include "base/bytes.hpp"

namespace todoke::api {
namespace {

using namespace std::chrono_literals;
using Fault = AccessTokens::Fault;

const std::string kWho(64, 'a');
constexpr SystemTime kNow{std::chrono::seconds(1'700'000'000)};

AccessTokens tokens(std::uint8_t secret = 1, std::string issuer = "wss://relay.example") {
  return {std::vector<std::uint8_t>(32, secret), std::move(issuer), 15min};
}

std::string url_encoded(std::string_view text) {
  return to_base64(as_bytes(text), Base64::url);
}

TEST(AccessTokenTest, NamesItsSubjectUntilItExpires) {
  const auto token = tokens().issue(kWho, kNow);
  EXPECT_EQ(tokens().read(token, kNow).subject, kWho);
  EXPECT_EQ(tokens().read(token, kNow + 15min - 1s).subject, kWho);
  EXPECT_EQ(tokens().read(token, kNow + 15min).fault, Fault::expired);
}

TEST(AccessTokenTest, IsNeverTheSameTwice) {
  EXPECT_NE(tokens().issue(kWho, kNow), tokens().issue(kWho, kNow));
}

TEST(AccessTokenTest, AnotherSecretOrIssuerIsForged) {
  const auto token = tokens().issue(kWho, kNow);
  EXPECT_EQ(tokens(2).read(token, kNow).fault, Fault::forged);
  EXPECT_EQ(tokens(1, "wss://other.example").read(token, kNow).fault, Fault::forged);
}

TEST(AccessTokenTest, NoPartOfItCanBeChanged) {
  const auto token = tokens().issue(kWho, kNow);
  for (std::size_t i = 0; i < token.size(); ++i) {
    auto changed = token;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    EXPECT_TRUE(tokens().read(changed, kNow).fault) << i;
  }
}

TEST(AccessTokenTest, AnotherAlgorithmIsNotEvenLookedAt) {
  const auto claims = url_encoded(R"({"sub":")" + kWho + R"(","exp":9999999999})");
  EXPECT_EQ(tokens().read(url_encoded(R"({"alg":"none"})") + "." + claims + ".", kNow).fault,
            Fault::malformed);
  for (const auto* text : {"", ".", "..", "a.b.c", "abc"}) {
    EXPECT_EQ(tokens().read(text, kNow).fault, Fault::malformed) << text;
  }
  EXPECT_EQ(tokens().read(std::string(3'000, '.'), kNow).fault, Fault::malformed);
}

// Checked with another implementation.
TEST(AccessTokenTest, ReadsATokenThatAnotherImplementationHasSigned) {
  const AccessTokens known(std::vector<std::uint8_t>(32, 'k'), "node", 15min);
  EXPECT_EQ(known
                .read("eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."
                      "eyJzdWIiOiAic29tZW9uZSIsICJpYXQiOiAxNzAwMDAwMDAwLCAiZXhwIjogMTcwMDAwMDkwMCwgImp0"
                      "aSI6ICIxIiwgImlzcyI6ICJub2RlIiwgImF1ZCI6ICJub2RlIn0"
                      ".wgWe-sQcW4z8Yu-sKED4_omzhN6TjIzjhFw7Wy9JSXE",
                      kNow)
                .subject,
            "someone");
}

}  // namespace
}  // namespace todoke::api

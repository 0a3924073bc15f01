#include "orders/intake/clients.hpp"

#include <cctype>
#include <cstdio>
#include <fstream>
#include <unistd.h>

#include <gtest/gtest.h>

namespace todoke::orders {
namespace {

// SHA-256 of "test".
constexpr std::string_view kHash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

std::string clients_refusal(const std::string& text) {
  const auto tokens = Tokens::parse(text);
  return tokens ? "taken" : tokens.error().message;
}

TEST(Tokens, KnowsNamesByTokens) {
  const auto tokens = Tokens::parse("# who may trade\n\ndesk-7 " + std::string(kHash) +
                                    "  # by hash\ncorrect-horse-battery\n");
  ASSERT_TRUE(tokens) << tokens.error().message;
  EXPECT_EQ(tokens->size(), 2U);
  EXPECT_EQ(tokens->name_of("test"), "desk-7");
  EXPECT_EQ(tokens->name_of("correct-horse-battery")->substr(0, 6), "token-");
  EXPECT_FALSE(tokens->name_of("Test"));
  EXPECT_FALSE(tokens->name_of(""));
  EXPECT_FALSE(tokens->name_of(kHash));
}

TEST(Tokens, SaysWhichLineIsWrong) {
  EXPECT_EQ(clients_refusal("short\n"), "line 1: a token has at least 16 characters");
  EXPECT_EQ(clients_refusal("\ndesk-7 abcdef\n"), "line 2: the hash of a token is 64 lower-case hex digits");
  EXPECT_EQ(clients_refusal("a b c\n"), "line 1: more than a name and a hash");
  EXPECT_EQ(clients_refusal("a " + std::string(kHash) + "\nb " + std::string(kHash)),
            "line 2: a token twice");
}

TEST(Tokens, AHashWithoutANameIsNoToken) {
  EXPECT_EQ(clients_refusal(std::string(kHash) + "\n"), "line 1: a hash without the name of its client");
  std::string upper(kHash);
  for (auto& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  EXPECT_EQ(clients_refusal(upper + "\n"), "line 1: a hash without the name of its client");
  EXPECT_EQ(clients_refusal(std::string(kHash) + "0\n"), "taken");
}

TEST(Clients, AreKnownByAddressWithoutTokens) {
  Clients clients("");
  EXPECT_TRUE(clients.load());
  EXPECT_EQ(clients.who("", "192.0.2.1"), "192.0.2.1");
}

TEST(Clients, AnEmptiedFileMeansNobody) {
  const auto path = testing::TempDir() + "tokens-" + std::to_string(getpid());
  std::ofstream(path) << "correct-horse-battery\n";
  Clients clients(path);
  ASSERT_TRUE(clients.load());
  EXPECT_TRUE(clients.who("Bearer correct-horse-battery", "192.0.2.1"));
  std::ofstream(path) << "# nobody for now\n";
  EXPECT_TRUE(clients.load());
  EXPECT_FALSE(clients.who("Bearer correct-horse-battery", "192.0.2.1"));
  EXPECT_FALSE(clients.who("", "192.0.2.1"));
  std::remove(path.c_str());
}

TEST(Clients, AreUnknownWhileTheFileCantBeRead) {
  Clients clients("/nowhere/tokens");
  const auto loaded = clients.load();
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().message, "orders.tokens_file /nowhere/tokens can't be read");
  EXPECT_FALSE(clients.who("Bearer test", "192.0.2.1"));
}

}  // namespace
}  // namespace todoke::orders

#include "app/consumer_url.hpp"

#include <gtest/gtest.h>

namespace todoke::app {
namespace {

TEST(ConsumerUriTest, OneHostStandsBeforeThePath) {
  EXPECT_EQ(
      consumer_uri("consumer_a", "pw", {{"host", "db.example"}, {"port", "5432"}, {"dbname", "todoke"}}),
      "postgresql://consumer_a:pw@db.example:5432/todoke");
}

TEST(ConsumerUriTest, AnAddressOfIpVersionSixStandsInBrackets) {
  EXPECT_EQ(consumer_uri("r", "pw", {{"host", "::1"}, {"port", "5432"}, {"dbname", "d"}}),
            "postgresql://r:pw@[::1]:5432/d");
}

TEST(ConsumerUriTest, TheFolderOfASocketIsAParameter) {
  EXPECT_EQ(consumer_uri("r", "pw", {{"host", "/run/todoke"}, {"port", "5432"}, {"dbname", "d"}}),
            "postgresql://r:pw@/d?host=%2Frun%2Ftodoke&port=5432");
}

TEST(ConsumerUriTest, SeveralHostsAreAParameter) {
  EXPECT_EQ(
      consumer_uri("r", "pw", {{"host", "a,b"}, {"port", "1,2"}, {"dbname", "d"}, {"sslmode", "require"}}),
      "postgresql://r:pw@/d?host=a%2Cb&port=1%2C2&sslmode=require");
}

TEST(ConsumerUriTest, WhatWouldEndAPartIsEncoded) {
  EXPECT_EQ(consumer_uri("a b", "p@:/?#", {{"host", "h"}, {"port", "1"}, {"dbname", "d/é"}}),
            "postgresql://a%20b:p%40%3A%2F%3F%23@h:1/d%2F%C3%A9");
}

}  // namespace
}  // namespace todoke::app

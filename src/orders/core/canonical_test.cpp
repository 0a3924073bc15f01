#include "orders/core/canonical.hpp"

#include <fstream>
#include <sstream>
#include <stdexcept>

#include <gtest/gtest.h>

#include "orders/core/exec_result.hpp"
#include "orders/core/order.hpp"

namespace todoke::orders {
namespace {

struct Block {
  std::string kind;  // what stands after the backticks
  std::string text;
};

// The fenced blocks of a page, in their order.
std::vector<Block> blocks_of(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("can't read " + path);
  std::vector<Block> blocks;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("```")) {
      inside = !inside;
      if (inside) blocks.push_back({line.substr(3), ""});
    } else if (inside) {
      auto& text = blocks.back().text;
      text += (text.empty() ? "" : "\n") + line;
    }
  }
  return blocks;
}

Order parsed(std::string_view json) {
  auto order = parse_order(json);
  if (!order) throw std::runtime_error(order.error().text());
  return std::move(*order);
}

TEST(Canonical, TheVectorsInTheDocumentationHold) {
  const auto blocks = blocks_of(TODOKE_DOCS "/orders.md");
  std::size_t vectors = 0;
  for (std::size_t i = 0; i + 2 < blocks.size(); ++i) {
    if (blocks[i].kind != "json body" && blocks[i].kind != "json result") continue;
    ASSERT_EQ(blocks[i + 1].kind, "text canonical");
    ASSERT_EQ(blocks[i + 2].kind, "text digest");
    if (blocks[i].kind == "json body") {
      const auto order = parsed(blocks[i].text);
      EXPECT_EQ(canonical_json(order), blocks[i + 1].text);
      EXPECT_EQ(request_digest(order), blocks[i + 2].text);
    } else {
      const auto result = parse_exec_result(blocks[i].text);
      ASSERT_TRUE(result) << result.error().text();
      EXPECT_EQ(canonical_json(*result), blocks[i + 1].text);
      EXPECT_EQ(result_digest(*result), blocks[i + 2].text);
    }
    ++vectors;
  }
  EXPECT_GE(vectors, 7U);
}

TEST(Canonical, EveryFieldButKeyAndTraceChangesTheDigest) {
  const std::string base = R"("instrument":"BTC-USD","side":"BUY","qty":1,"idempotency_key":"key-0001")";
  const auto digest = request_digest(parsed("{" + base + "}"));
  EXPECT_EQ(digest, request_digest(parsed("{" + base + R"(,"trace_id":"t"})")));
  for (const auto* more :
       {R"("price":1)", R"("time_in_force":"FOK")", R"("order_id":"")",
        R"("requested_at":"2025-08-24T12:34:56Z")", R"("tags":[])", R"("risk_constraints":{})"}) {
    EXPECT_NE(digest, request_digest(parsed("{" + base + "," + more + "}"))) << more;
  }
}

TEST(Canonical, WhatIsStoredIsTheSameOrder) {
  const auto order = parsed(
      R"({"instrument":"BTC-USD","side":"SELL","qty":1.50,"price":2e-3,"time_in_force":"GTC",
          "idempotency_key":"key\"\\0001","order_id":"o\u0001","requested_at":"2025-08-24T12:34:56Z","tags":["a","b"],
          "risk_constraints":{"max_dd":0.1},"trace_id":"t"})");
  EXPECT_EQ(parsed(stored_json(order)), order);
  const auto least = parsed(R"({"instrument":"BTC-USD","side":"BUY","qty":1,"idempotency_key":"key-0001"})");
  EXPECT_EQ(parsed(stored_json(least)), least);
}

TEST(Canonical, AKeyIsShownAsThirtyTwoHexDigits) {
  EXPECT_EQ(key_hash("abcdefgh"), "9c56cc51b374c3ba189210d5b6d4bf57");
}

}  // namespace
}  // namespace todoke::orders

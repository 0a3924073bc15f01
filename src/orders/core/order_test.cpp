#include "orders/core/order.hpp"

#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace todoke::orders {
namespace {

// A good order, with members replaced (or, by an empty text, left out).
std::string body(const std::map<std::string, std::string>& changes) {
  std::map<std::string, std::string> members{{"instrument", R"("BTC-USD")"},
                                             {"side", R"("BUY")"},
                                             {"qty", "0.5"},
                                             {"idempotency_key", R"("key-0001")"}};
  for (const auto& [name, value] : changes) members[name] = value;
  std::string text;
  for (const auto& [name, value] : members) {
    if (!value.empty()) text += fmt::format("{}\"{}\":{}", text.empty() ? "" : ",", name, value);
  }
  return "{" + text + "}";
}

Order good_order(const std::map<std::string, std::string>& changes) {
  auto order = parse_order(body(changes));
  EXPECT_TRUE(order) << (order ? "" : order.error().text());
  return order.value_or(Order());
}

std::string refusal_of(std::string_view json) {
  const auto order = parse_order(json);
  return order ? "taken" : order.error().text();
}

std::string order_refusal(const std::map<std::string, std::string>& changes) {
  return refusal_of(body(changes));
}

TEST(OrderParse, TakesTheLeastOrder) {
  const auto order = good_order({});
  EXPECT_EQ(order.instrument, "BTC-USD");
  EXPECT_EQ(order.side, Side::buy);
  EXPECT_EQ(order.qty.text(), "0.5");
  EXPECT_EQ(order.idempotency_key, "key-0001");
  EXPECT_FALSE(order.price);
  EXPECT_EQ(order.time_in_force, TimeInForce::ioc);
  EXPECT_FALSE(order.order_id || order.requested_at || order.tags || order.risk_constraints ||
               order.trace_id);
}

TEST(OrderParse, TakesEveryField) {
  const auto order =
      good_order({{"side", R"("SELL")"},
                  {"price", "101.250"},
                  {"time_in_force", R"("GTC")"},
                  {"order_id", R"("o-1")"},
                  {"requested_at", R"("2025-08-24T12:34:56.789+09:00")"},
                  {"tags", R"(["alpha","",""])"},
                  {"risk_constraints", R"({"max_dd":0.05,"max_consecutive_loss":3,"max_spread":null})"},
                  {"trace_id", R"("t-1")"}});
  EXPECT_EQ(order.side, Side::sell);
  EXPECT_EQ(order.price->text(), "101.25");
  EXPECT_EQ(order.time_in_force, TimeInForce::gtc);
  EXPECT_EQ(order.order_id, "o-1");
  EXPECT_EQ(order.requested_at, "2025-08-24T12:34:56.789+09:00");
  EXPECT_EQ(order.tags, (std::vector<std::string>{"alpha", "", ""}));
  ASSERT_TRUE(order.risk_constraints);
  EXPECT_EQ(order.risk_constraints->max_dd->text(), "0.05");
  EXPECT_EQ(order.risk_constraints->max_consecutive_loss->text(), "3");
  EXPECT_FALSE(order.risk_constraints->max_spread);
  EXPECT_EQ(order.trace_id, "t-1");
}

TEST(OrderParse, TakesNullForWhatIsOptional) {
  const auto order = good_order({{"price", "null"},
                                 {"time_in_force", "null"},
                                 {"order_id", "null"},
                                 {"requested_at", "null"},
                                 {"tags", "null"},
                                 {"risk_constraints", "null"},
                                 {"trace_id", "null"}});
  EXPECT_EQ(order, good_order({}));
}

TEST(OrderParse, NamesTheBodyWhenItIsNoObject) {
  for (const auto* text : {"[]", "1", "\"x\"", "null", "true"}) {
    EXPECT_EQ(refusal_of(text), "body must be a JSON object") << text;
  }
  EXPECT_EQ(refusal_of(""), "body is no valid JSON");
  EXPECT_EQ(refusal_of("{"), "body is no valid JSON");
}

TEST(OrderParse, RequiresWhatIsRequired) {
  for (const auto* name : {"instrument", "side", "qty", "idempotency_key"}) {
    EXPECT_EQ(order_refusal({{name, ""}}), fmt::format("{} is required", name));
    EXPECT_EQ(order_refusal({{name, "null"}}), fmt::format("{} is required", name));
  }
}

TEST(OrderParse, RefusesUnknownMembersAtAnyDepth) {
  EXPECT_EQ(order_refusal({{"quantity", "1"}}), "quantity is unknown");
  EXPECT_EQ(order_refusal({{"Qty", "1"}}), "Qty is unknown");
  EXPECT_EQ(order_refusal({{"risk_constraints", R"({"max_dd":1,"max_gain":1})"}}),
            "risk_constraints.max_gain is unknown");
  EXPECT_EQ(order_refusal({{"unknown", "null"}}), "unknown is unknown");
}

TEST(OrderParse, RefusesDuplicatesSurrogatesAndNulWithTheirField) {
  EXPECT_EQ(refusal_of(R"({"qty":1,"qty":1})"), "qty is there twice");
  EXPECT_EQ(order_refusal({{"risk_constraints", R"({"max_dd":1,"max_dd":1})"}}),
            "risk_constraints.max_dd is there twice");
  EXPECT_EQ(order_refusal({{"tags", R"(["a","\ud800"])"}}), "tags[1] holds half of a surrogate pair");
  EXPECT_EQ(order_refusal({{"order_id", R"("a\u0000")"}}), "order_id holds the character U+0000");
}

TEST(OrderParse, ChecksTheInstrument) {
  const std::string rule = "instrument must be 3 to 20 characters of A-Z, 0-9, dot, underscore and hyphen";
  for (const auto* text : {R"("")", R"("AB")", R"("btc-usd")", R"("BTC/USD")", R"("ABCDEFGHIJKLMNOPQRSTU")",
                           R"("BTC USD")", R"("BTC-USD\n")", R"("\u0410\u0412\u0421")"}) {
    EXPECT_EQ(order_refusal({{"instrument", text}}), rule) << text;
  }
  EXPECT_EQ(order_refusal({{"instrument", "123"}}), "instrument must be a string");
  EXPECT_EQ(good_order({{"instrument", R"("A.1")"}}).instrument, "A.1");
  EXPECT_EQ(good_order({{"instrument", R"("ABCDEFGHIJKLMNOPQ_-.")"}}).instrument, "ABCDEFGHIJKLMNOPQ_-.");
}

TEST(OrderParse, ChecksSideAndTimeInForce) {
  EXPECT_EQ(order_refusal({{"side", R"("buy")"}}), "side must be BUY or SELL");
  EXPECT_EQ(order_refusal({{"side", "1"}}), "side must be a string");
  EXPECT_EQ(order_refusal({{"time_in_force", R"("DAY")"}}), "time_in_force must be IOC, FOK or GTC");
  EXPECT_EQ(order_refusal({{"time_in_force", "true"}}), "time_in_force must be a string");
  EXPECT_EQ(good_order({{"time_in_force", R"("FOK")"}}).time_in_force, TimeInForce::fok);
}

TEST(OrderParse, ChecksAmounts) {
  EXPECT_EQ(order_refusal({{"qty", "0"}}), "qty must be more than 0");
  EXPECT_EQ(order_refusal({{"qty", "-1"}}), "qty must be more than 0");
  EXPECT_EQ(order_refusal({{"qty", R"("1")"}}), "qty must be a number");
  EXPECT_EQ(order_refusal({{"qty", "1e20"}}), "qty has more than 20 digits before the point");
  EXPECT_EQ(order_refusal({{"qty", "1e-19"}}), "qty has more than 18 digits after the point");
  EXPECT_EQ(order_refusal({{"price", "0.0"}}), "price must be null or more than 0");
  EXPECT_EQ(order_refusal({{"price", "-0.1"}}), "price must be null or more than 0");
  EXPECT_EQ(order_refusal({{"price", R"("1.5")"}}), "price must be a number");
  EXPECT_EQ(good_order({{"qty", "99999999999999999999.999999999999999999"}}).qty.text(),
            "99999999999999999999.999999999999999999");
}

TEST(OrderParse, ChecksTheKey) {
  const std::string rule = "idempotency_key must be 8 to 64 printable ASCII characters without space";
  for (const auto* text :
       {R"("")", R"("1234567")", R"("with space")", R"("\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9")",
        R"("12345678\u007f")", R"("12345678\n")"}) {
    EXPECT_EQ(order_refusal({{"idempotency_key", text}}), rule) << text;
  }
  EXPECT_EQ(order_refusal({{"idempotency_key", fmt::format("\"{}\"", std::string(65, 'k'))}}), rule);
  EXPECT_EQ(order_refusal({{"idempotency_key", "12345678"}}), "idempotency_key must be a string");
  EXPECT_EQ(good_order({{"idempotency_key", R"("!/%?#~\"\\")"}}).idempotency_key, "!/%?#~\"\\");
  EXPECT_EQ(
      good_order({{"idempotency_key", fmt::format("\"{}\"", std::string(64, 'k'))}}).idempotency_key.size(),
      64U);
}

TEST(OrderParse, ChecksTags) {
  EXPECT_EQ(order_refusal({{"tags", R"("a")"}}), "tags must be an array");
  EXPECT_EQ(order_refusal({{"tags", R"(["1","2","3","4","5","6","7","8","9"])"}}),
            "tags has more than 8 entries");
  EXPECT_EQ(order_refusal({{"tags", R"(["a","b","c",4])"}}), "tags[3] must be a string");
  EXPECT_EQ(order_refusal({{"tags", R"([null])"}}), "tags[0] must be a string");
  EXPECT_EQ(order_refusal({{"tags", fmt::format("[\"a\",\"{}\"]", std::string(33, 'x'))}}),
            "tags[1] has more than 32 characters");
  std::string wide;
  for (int i = 0; i < 32; ++i) wide += "\u3042";
  EXPECT_EQ(good_order({{"tags", fmt::format("[\"{}\"]", wide)}}).tags->front(), wide);
}

TEST(OrderParse, ChecksRiskConstraints) {
  EXPECT_EQ(order_refusal({{"risk_constraints", "[]"}}), "risk_constraints must be an object");
  EXPECT_EQ(order_refusal({{"risk_constraints", R"({"max_dd":"0.1"})"}}),
            "risk_constraints.max_dd must be a number");
  EXPECT_EQ(order_refusal({{"risk_constraints", R"({"max_dd":-1})"}}),
            "risk_constraints.max_dd must be 0 or more");
  EXPECT_EQ(order_refusal({{"risk_constraints", R"({"max_consecutive_loss":true})"}}),
            "risk_constraints.max_consecutive_loss must be a number");
  EXPECT_EQ(order_refusal({{"risk_constraints", R"({"max_spread":1e-19})"}}),
            "risk_constraints.max_spread has more than 18 digits after the point");
}

TEST(OrderParse, ChecksIdsAndTimes) {
  EXPECT_EQ(order_refusal({{"order_id", "7"}}), "order_id must be a string");
  EXPECT_EQ(order_refusal({{"order_id", fmt::format("\"{}\"", std::string(129, 'x'))}}),
            "order_id has more than 128 characters");
  EXPECT_EQ(order_refusal({{"trace_id", "{}"}}), "trace_id must be a string");
  EXPECT_EQ(order_refusal({{"trace_id", fmt::format("\"{}\"", std::string(129, 'x'))}}),
            "trace_id has more than 128 characters");
  EXPECT_EQ(order_refusal({{"requested_at", "1756000000"}}), "requested_at must be a string");
  EXPECT_EQ(order_refusal({{"requested_at", R"("yesterday")"}}),
            "requested_at must be a date and time with its offset, such as 2025-08-24T12:34:56Z");
}

TEST(OrderParse, BringsTextIntoNormalForm) {
  EXPECT_EQ(good_order({{"order_id", R"("e\u0301")"}}).order_id, "\u00e9");
  EXPECT_EQ(good_order({{"tags", "[\"\u30cf\u309a\"]"}}).tags->front(), "\u30d1");
}

}  // namespace
}  // namespace todoke::orders

#include "orders/core/exec_result.hpp"

#include <chrono>

#include <gtest/gtest.h>

#include "base/timestamp.hpp"

namespace todoke::orders {
namespace {

Decimal amount(std::string_view text) {
  return Decimal::parse(text).value();
}

ExecResult filled() {
  ExecResult result;
  result.status = ExecStatus::ok;
  result.order_id = "desk-7/42";
  result.instrument = "USDJPY";
  result.side = "SELL";
  result.requested_at = "2025-08-24T12:34:56.789+09:00";
  result.completed_at = parse_timestamp("2025-08-24T03:34:57.1Z").value();
  result.trace_id = "t-1";
  result.idempotency_key = "vector-0003";
  result.fills = {{amount("147.25"), amount("6000"), parse_timestamp("2025-08-24T03:34:57Z").value()},
                  {amount("147.26"), amount("4000.000000000000000001"),
                   parse_timestamp("2025-08-24T03:34:57.05Z").value()}};
  result.avg_price = amount("147.254");
  result.executed_qty = result.fills[0].qty + result.fills[1].qty;
  result.cost = result.fills[0].px * result.fills[0].qty + result.fills[1].px * result.fills[1].qty;
  result.slippage = amount("-0.004");
  result.broker = {"paper", "P-1"};
  result.latency_ms = {12, 34, 46};
  result.warnings = {"RISK_NOT_ENFORCED"};
  return result;
}

TEST(ExecResultJson, WritesEveryMemberInTheOrderOfTheContract) {
  EXPECT_EQ(
      to_json(filled()),
      R"({"status":"ok","order_id":"desk-7/42","instrument":"USDJPY","side":"SELL",)"
      R"("requested_at":"2025-08-24T12:34:56.789+09:00","completed_at":"2025-08-24T03:34:57.100000Z","trace_id":"t-1",)"
      R"("idempotency_key":"vector-0003","fills":[{"px":147.25,"qty":6000,"ts":"2025-08-24T03:34:57.000000Z"},)"
      R"({"px":147.26,"qty":4000.000000000000000001,"ts":"2025-08-24T03:34:57.050000Z"}],"avg_price":147.254,)"
      R"("executed_qty":10000.000000000000000001,"cost":1472540.00000000000000014726,"slippage":-0.004,)"
      R"("broker":{"name":"paper","order_ref":"P-1"},"latency_ms":{"queue":12,"broker_rtt":34,"total":46},)"
      R"("reason_code":null,"warnings":["RISK_NOT_ENFORCED"]})");
}

TEST(ExecResultJson, IsReadBackAsItWas) {
  auto failed = ExecResult();
  failed.reason_code = "BROKER_TIMEOUT";
  for (const auto& result : {filled(), failed}) {
    const auto again = parse_exec_result(to_json(result));
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(to_json(*again), to_json(result));
  }
}

TEST(ExecResultJson, RefusesWhatItWouldNotHaveWritten) {
  const auto refusal = [](std::string_view json) {
    const auto result = parse_exec_result(json);
    return result ? "taken" : result.error().text();
  };
  EXPECT_EQ(refusal("{}"), "status is required");
  EXPECT_EQ(refusal(R"({"status":"fine"})"), "status must be ok or error");
  EXPECT_EQ(refusal(R"({"status":"ok","profit":1})"), "profit is unknown");
  EXPECT_EQ(refusal(R"({"status":"ok","fills":[{"px":1,"qty":1}]})"), "fills[0].ts is required");
  EXPECT_EQ(refusal(R"({"status":"ok","fills":[1]})"), "fills[0] must be an object");
  EXPECT_EQ(refusal(R"({"status":"ok","executed_qty":"1"})"), "executed_qty must be a number");
  EXPECT_EQ(refusal(R"({"status":"ok","latency_ms":{"queue":1.5}})"),
            "latency_ms.queue must be a whole number");
  EXPECT_EQ(refusal(R"({"status":"ok","completed_at":"now"})"),
            "completed_at must be a date and time with its offset");
  EXPECT_EQ(refusal(R"({"status":"ok","warnings":[1]})"), "warnings[0] must be a string");
  EXPECT_EQ(refusal(R"({"status":"ok"})"), "taken");
}

TEST(ExecResultJson, TheDigestCoversWhatHappenedAndNothingElse) {
  const auto digest = result_digest(filled());
  auto other = filled();
  other.completed_at += std::chrono::seconds(1);
  other.latency_ms.total = 99;
  other.trace_id.reset();
  other.warnings.clear();
  other.broker.order_ref = "P-2";
  EXPECT_EQ(result_digest(other), digest);
  const auto changed = [&](auto change) {
    auto result = filled();
    change(result);
    return result_digest(result) != digest;
  };
  EXPECT_TRUE(changed([](ExecResult& r) { r.status = ExecStatus::error; }));
  EXPECT_TRUE(changed([](ExecResult& r) { r.order_id = "x"; }));
  EXPECT_TRUE(changed([](ExecResult& r) { r.instrument = "x"; }));
  EXPECT_TRUE(changed([](ExecResult& r) { r.side = "BUY"; }));
  EXPECT_TRUE(changed([](ExecResult& r) { r.executed_qty = amount("1"); }));
  EXPECT_TRUE(changed([](ExecResult& r) { r.avg_price.reset(); }));
  EXPECT_TRUE(changed([](ExecResult& r) { r.fills.pop_back(); }));
  EXPECT_TRUE(changed([](ExecResult& r) { r.fills[0].ts += std::chrono::microseconds(1); }));
  EXPECT_TRUE(changed([](ExecResult& r) { r.reason_code = "BROKER_REJECTED"; }));
}

}  // namespace
}  // namespace todoke::orders

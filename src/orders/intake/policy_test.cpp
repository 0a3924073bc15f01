#include "orders/intake/policy.hpp"

#include <gtest/gtest.h>

#include "orders/intake/config.hpp"

namespace todoke::orders {
namespace {

AmountTable table(std::vector<std::string> entries) {
  auto parsed = AmountTable::parse(entries, true);
  EXPECT_TRUE(parsed);
  return parsed.value_or(AmountTable());
}

std::string refusal_of_table(const std::string& entry, bool allow_any = true) {
  const std::vector<std::string> entries{entry};
  const auto parsed = AmountTable::parse(entries, allow_any);
  return parsed ? "taken" : parsed.error().message;
}

std::string verdict(const Policy& policy, std::string instrument, std::string_view qty,
                    std::string_view price = "") {
  Order order;
  order.instrument = std::move(instrument);
  order.qty = Decimal::parse(qty).value();
  if (!price.empty()) order.price = Decimal::parse(price).value();
  const auto refusal = policy.check(order);
  return refusal ? std::string(refusal->code) + " " + refusal->why.text() : "allowed";
}

TEST(Policy, NamesOfInstrumentsAreCheckedAtTheStart) {
  Schema schema;
  schema.add(api_config_keys());
  Config config(schema);
  config.set_flag("orders.instruments", "BTC-USD,btc");
  std::string refusal;
  try {
    policy_from(config);
  } catch (const UserError& error) {
    refusal = error.what();
  }
  EXPECT_EQ(refusal,
            "--orders.instruments: orders.instruments: 'btc' must be 3 to 20 characters of A-Z, 0-9, dot, "
            "underscore and hyphen");
}

TEST(Policy, AllowsEverythingByDefault) {
  EXPECT_EQ(verdict({}, "ANY", "99999999999999999999.999999999999999999", "99999999999999999999"), "allowed");
}

TEST(Policy, TakesOnlyListedInstruments) {
  Policy policy;
  policy.instruments = {"BTC-USD"};
  EXPECT_EQ(verdict(policy, "BTC-USD", "1"), "allowed");
  EXPECT_EQ(verdict(policy, "ETH-USD", "1"), "VALIDATION_ERROR instrument is not traded here");
}

TEST(Policy, ChecksLotSteps) {
  Policy policy;
  policy.lot_steps = table({"BTC-USD=0.001"});
  EXPECT_EQ(verdict(policy, "BTC-USD", "0.003"), "allowed");
  EXPECT_EQ(verdict(policy, "BTC-USD", "0.0035"), "VALIDATION_ERROR qty must be a multiple of 0.001");
  EXPECT_EQ(verdict(policy, "ETH-USD", "0.0035"), "allowed");
}

TEST(Policy, BoundsQuantityAndNotional) {
  Policy policy;
  policy.qty_max = table({"BTC-USD=2", "*=100"});
  policy.notional_max = table({"BTC-USD=100000"});
  EXPECT_EQ(verdict(policy, "BTC-USD", "2"), "allowed");
  EXPECT_EQ(verdict(policy, "BTC-USD", "2.000000000000000001"), "LIMIT_EXCEEDED orders.limits.qty_max is 2");
  EXPECT_EQ(verdict(policy, "ETH-USD", "101"), "LIMIT_EXCEEDED orders.limits.qty_max is 100");
  EXPECT_EQ(verdict(policy, "BTC-USD", "2", "50000"), "allowed");
  EXPECT_EQ(verdict(policy, "BTC-USD", "2", "50000.000000000000000001"),
            "LIMIT_EXCEEDED orders.limits.notional_max is 100000");
}

TEST(Policy, RefusesTablesThatCantBeRead) {
  EXPECT_EQ(refusal_of_table("BTC-USD"), "'BTC-USD' is no INSTRUMENT=AMOUNT");
  EXPECT_EQ(refusal_of_table("=1"), "'=1' is no INSTRUMENT=AMOUNT");
  EXPECT_EQ(refusal_of_table("*=1", false), "'*=1' is no INSTRUMENT=AMOUNT");
  EXPECT_EQ(refusal_of_table("btc=1"),
            "'btc' must be 3 to 20 characters of A-Z, 0-9, dot, underscore and hyphen");
  EXPECT_EQ(refusal_of_table("ABC=x"), "'ABC=x': the amount is no JSON number");
  EXPECT_EQ(refusal_of_table("ABC=0"), "'ABC=0': the amount must be more than 0");
  const std::vector<std::string> twice{"ABC=1", "ABC=2"};
  EXPECT_EQ(AmountTable::parse(twice, true).error().message, "ABC is there twice");
}

}  // namespace
}  // namespace todoke::orders

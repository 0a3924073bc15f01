#include "orders/core/decimal.hpp"

#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace todoke::orders {
namespace {

Decimal dec(std::string_view text) {
  const auto parsed = Decimal::parse(text);
  if (!parsed) throw std::invalid_argument(std::string(text) + " " + parsed.error().message);
  return *parsed;
}

std::string canonical(std::string_view text) {
  return dec(text).text();
}

std::string refusal(std::string_view text) {
  const auto parsed = Decimal::parse(text);
  return parsed ? "taken as " + parsed->text() : parsed.error().message;
}

TEST(Decimal, HasOneTextForEveryValue) {
  EXPECT_EQ(canonical("0.1"), "0.1");
  EXPECT_EQ(canonical("0.10"), "0.1");
  EXPECT_EQ(canonical("1e-1"), "0.1");
  EXPECT_EQ(canonical("10E-2"), "0.1");
  EXPECT_EQ(canonical("0.001e+2"), "0.1");
  EXPECT_EQ(canonical("100"), "100");
  EXPECT_EQ(canonical("1.5e3"), "1500");
  EXPECT_EQ(canonical("100.0"), "100");
  EXPECT_EQ(canonical("1e2"), "100");
  EXPECT_EQ(canonical("-12.50"), "-12.5");
  EXPECT_EQ(dec("0.1"), dec("1e-1"));
}

TEST(Decimal, ZeroHasNoSignAndNoDigits) {
  for (const auto* zero :
       {"0", "-0", "0.000", "-0.0e5", "0e999999999999999999999", "0e-999999999999999999999"}) {
    EXPECT_EQ(canonical(zero), "0") << zero;
    EXPECT_TRUE(dec(zero).is_zero()) << zero;
    EXPECT_FALSE(dec(zero).is_negative()) << zero;
  }
}

TEST(Decimal, TakesTwentyDigitsBeforeAndEighteenAfterThePoint) {
  EXPECT_EQ(canonical("99999999999999999999.999999999999999999"), "99999999999999999999.999999999999999999");
  EXPECT_EQ(canonical("0.000000000000000001"), "0.000000000000000001");
  EXPECT_EQ(canonical("1e-18"), "0.000000000000000001");
  EXPECT_EQ(canonical("1e19"), "10000000000000000000");
  EXPECT_EQ(refusal("100000000000000000000"), "has more than 20 digits before the point");
  EXPECT_EQ(refusal("1e20"), "has more than 20 digits before the point");
  EXPECT_EQ(refusal("1e-19"), "has more than 18 digits after the point");
  EXPECT_EQ(refusal("0.1234567890123456789"), "has more than 18 digits after the point");
  EXPECT_EQ(refusal("1e999999999999999999999999"), "has more than 20 digits before the point");
  EXPECT_EQ(refusal("1e-999999999999999999999999"), "has more than 18 digits after the point");
}

TEST(Decimal, CountsTheDigitsOfTheValueNotOfItsSpelling) {
  EXPECT_EQ(canonical("1.00000000000000000000000000"), "1");
  EXPECT_EQ(canonical("1000000000000000000000000e-10"), "100000000000000");
  EXPECT_EQ(canonical("0.0000000000000000000000001e25"), "1");
}

TEST(Decimal, RefusesWhatIsNoJsonNumber) {
  for (const auto* text : {"",     "-",   "+1",       "01", "-01", ".5",  "5.",    "1e",    "1e+", "1.e1",
                           "0x10", "NaN", "Infinity", "1 ", " 1",  "1,5", "\"1\"", "1e1.5", "--1", "1_000"}) {
    EXPECT_EQ(refusal(text), "is no JSON number") << text;
  }
}

TEST(Decimal, ComparesByValue) {
  EXPECT_LT(dec("0.09"), dec("0.1"));
  EXPECT_LT(dec("9"), dec("10"));
  EXPECT_GT(dec("10.000000000000000001"), dec("10"));
  EXPECT_LT(dec("-10"), dec("-9.99"));
  EXPECT_LT(dec("-0.1"), dec("0"));
  EXPECT_LT(dec("0"), dec("0.000000000000000001"));
  EXPECT_LT(dec("-1"), dec("1"));
  EXPECT_LE(dec("1.0"), dec("1"));
  EXPECT_EQ(Decimal(-25), dec("-25"));
  EXPECT_EQ(Decimal(INT64_MIN).text(), "-9223372036854775808");
}

TEST(Decimal, AddsExactly) {
  EXPECT_EQ((dec("0.1") + dec("0.2")).text(), "0.3");
  EXPECT_EQ((dec("99999999999999999999") + dec("0.000000000000000001")).text(),
            "99999999999999999999.000000000000000001");
  EXPECT_EQ((dec("99999999999999999999") + dec("1")).text(), "100000000000000000000");
  EXPECT_EQ((dec("1.25") - dec("1.25")).text(), "0");
  EXPECT_EQ((dec("1") - dec("2.5")).text(), "-1.5");
  EXPECT_EQ((dec("-1") - dec("-2.5")).text(), "1.5");
  auto sum = Decimal();
  for (int i = 0; i < 10; ++i) sum += dec("0.1");
  EXPECT_EQ(sum, Decimal(1));
}

TEST(Decimal, MultipliesExactlyBeyondTheLimitsOfInput) {
  EXPECT_EQ((dec("1.1") * dec("1.1")).text(), "1.21");
  EXPECT_EQ((dec("99999999999999999999.999999999999999999") * dec("99999999999999999999.999999999999999999"))
                .text(),
            "9999999999999999999999999999999999999800.000000000000000000000000000000000001");
  EXPECT_EQ((dec("1e-18") * dec("1e-18")).text(), "0.000000000000000000000000000000000001");
  EXPECT_EQ((dec("-3") * dec("0.5")).text(), "-1.5");
  EXPECT_EQ((dec("-3") * dec("0")).text(), "0");
  EXPECT_EQ((dec("2.5") * dec("4")).text(), "10");
}

TEST(Decimal, RoundsTiesToEven) {
  EXPECT_EQ(dec("0.125").rounded(2).text(), "0.12");
  EXPECT_EQ(dec("0.135").rounded(2).text(), "0.14");
  EXPECT_EQ(dec("0.1251").rounded(2).text(), "0.13");
  EXPECT_EQ(dec("-0.126").rounded(2).text(), "-0.13");
  EXPECT_EQ(dec("-0.001").rounded(2).text(), "0");
  EXPECT_EQ(dec("9.99").rounded(1).text(), "10");
  EXPECT_EQ(dec("1.5").rounded().text(), "1.5");
}

TEST(Decimal, DividesToTheDigitsAskedFor) {
  EXPECT_EQ(dec("1").divided_by(dec("3")).text(), "0.333333333333333333");
  EXPECT_EQ(dec("2").divided_by(dec("3")).text(), "0.666666666666666667");
  EXPECT_EQ(dec("-1").divided_by(dec("8"), 2).text(), "-0.12");
  EXPECT_EQ(dec("302.5").divided_by(dec("2.5")).text(), "121");
  EXPECT_EQ(dec("0.000000000000000001").divided_by(dec("0.000000000000000001")).text(), "1");
  EXPECT_THROW((void)dec("1").divided_by(Decimal()), std::domain_error);
}

TEST(Decimal, KnowsMultiplesOfAStepExactly) {
  EXPECT_TRUE(dec("0.3").is_multiple_of(dec("0.1")));
  EXPECT_TRUE(dec("1e19").is_multiple_of(dec("1e-18")));
  EXPECT_TRUE(dec("300").is_multiple_of(dec("100")));
  EXPECT_FALSE(dec("150").is_multiple_of(dec("100")));
  EXPECT_FALSE(dec("0.300000000000000001").is_multiple_of(dec("0.1")));
  EXPECT_THROW((void)dec("1").is_multiple_of(Decimal()), std::domain_error);
}

}  // namespace
}  // namespace todoke::orders

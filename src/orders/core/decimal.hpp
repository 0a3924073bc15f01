// Money and quantities: exact decimals, never binary floats. A value has one form only (no zeros at either
// end, no sign of zero), so that 0.1, 0.10 and 1e-1 are equal and are written alike.
//
// Values from outside have at most 20 digits before and 18 after the point. Sums and products are exact and
// may be longer; rounded() brings them back. Copies of up to 15 digits don't allocate.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace todoke::orders {

class Decimal {
 public:
  static constexpr std::size_t kWholeDigitsMax = 20;
  static constexpr std::size_t kFractionDigitsMax = 18;

  Decimal() = default;  // zero
  Decimal(std::int64_t whole);

  // A number by the grammar of JSON, exponent included. The limits are those of the value: `1.000` and
  // `0.001e3` have no digit after the point.
  static Expected<Decimal> parse(std::string_view number) {
    return parse(number, kWholeDigitsMax, kFractionDigitsMax);
  }
  // With limits of the caller's own, for computed values.
  static Expected<Decimal> parse(std::string_view number, std::size_t whole_max, std::size_t fraction_max);

  // Without exponent: -12.5, 0, 0.001.
  [[nodiscard]] std::string text() const;

  [[nodiscard]] bool is_zero() const { return digits_.empty(); }
  [[nodiscard]] bool is_negative() const { return negative_; }
  [[nodiscard]] bool is_positive() const { return !negative_ && !is_zero(); }

  bool operator==(const Decimal& other) const = default;
  std::strong_ordering operator<=>(const Decimal& other) const;

  friend Decimal operator+(const Decimal& a, const Decimal& b);
  friend Decimal operator-(const Decimal& a, const Decimal& b);
  friend Decimal operator*(const Decimal& a, const Decimal& b);
  Decimal& operator+=(const Decimal& other) { return *this = *this + other; }

  // To `digits` after the point, ties to even.
  [[nodiscard]] Decimal rounded(std::size_t digits = kFractionDigitsMax) const;
  // To `digits` after the point, ties to even. Dividing by zero throws std::domain_error.
  [[nodiscard]] Decimal divided_by(const Decimal& divisor, std::size_t digits = kFractionDigitsMax) const;
  // A step of zero or less is a programming error and throws std::domain_error.
  [[nodiscard]] bool is_multiple_of(const Decimal& step) const;

 private:
  // digits, of which the last `scale` stand after the point; in any form.
  static Decimal of(bool negative, std::string digits, std::size_t scale);

  bool negative_ = false;
  std::string digits_;     // no leading zeros, and no trailing ones after the point; empty: zero
  std::size_t scale_ = 0;  // how many of the digits stand after the point; may exceed their number
};

}  // namespace todoke::orders

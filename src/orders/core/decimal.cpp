#include "orders/core/decimal.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <stdexcept>

#include <boost/multiprecision/cpp_int.hpp>
#include <fmt/format.h>

namespace todoke::orders {
namespace {

using boost::multiprecision::cpp_int;

// More than this in an exponent moves any digit out of the limits.
constexpr std::int64_t kExponentMax = 1'000'000;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view read_digits(std::string_view& text) {
  std::size_t count = 0;
  while (count < text.size() && is_digit(text[count])) ++count;
  const auto digits = text.substr(0, count);
  text.remove_prefix(count);
  return digits;
}

struct Number {
  bool negative = false;
  std::string_view whole;
  std::string_view fraction;
  std::int64_t exponent = 0;  // held at kExponentMax and -kExponentMax
};

std::int64_t exponent_of(bool negative, std::string_view digits) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || value > kExponentMax) value = kExponentMax;
  return negative ? -value : value;
}

std::optional<Number> read_number(std::string_view text) {
  Number number;
  const auto skip = [&text](char c) {
    if (!text.starts_with(c)) return false;
    text.remove_prefix(1);
    return true;
  };
  number.negative = skip('-');
  number.whole = read_digits(text);
  if (number.whole.empty() || (number.whole.size() > 1 && number.whole[0] == '0')) return std::nullopt;
  if (skip('.')) {
    number.fraction = read_digits(text);
    if (number.fraction.empty()) return std::nullopt;
  }
  if (skip('e') || skip('E')) {
    const bool down = skip('-');
    if (!down) skip('+');
    const auto digits = read_digits(text);
    if (digits.empty()) return std::nullopt;
    number.exponent = exponent_of(down, digits);
  }
  if (!text.empty()) return std::nullopt;
  return number;
}

// The digits as if `scale` of them stood after the point; needs scale >= the value's own.
cpp_int widened(std::string digits, std::size_t zeros, bool negative) {
  if (digits.empty()) return 0;
  digits.append(zeros, '0');
  cpp_int value(digits);
  if (negative) value = -value;
  return value;
}

cpp_int power_of_ten(std::size_t exponent) {
  return boost::multiprecision::pow(cpp_int(10), static_cast<unsigned>(exponent));
}

// |dividend| / |divisor|, ties to even.
cpp_int divide_rounding(const cpp_int& dividend, const cpp_int& divisor) {
  cpp_int quotient;
  cpp_int rest;
  boost::multiprecision::divide_qr(dividend, divisor, quotient, rest);
  const cpp_int twice = rest * 2;
  if (twice > divisor || (twice == divisor && quotient % 2 != 0)) ++quotient;
  return quotient;
}

}  // namespace

Decimal::Decimal(std::int64_t whole) {
  auto digits = std::to_string(whole);
  const bool negative = whole < 0;
  if (negative) digits.erase(0, 1);
  *this = of(negative, std::move(digits), 0);
}

Decimal Decimal::of(bool negative, std::string digits, std::size_t scale) {
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  while (scale > 0 && !digits.empty() && digits.back() == '0') {
    digits.pop_back();
    --scale;
  }
  Decimal decimal;
  if (digits.empty()) return decimal;
  decimal.negative_ = negative;
  decimal.digits_ = std::move(digits);
  decimal.scale_ = scale;
  return decimal;
}

Expected<Decimal> Decimal::parse(std::string_view text, std::size_t whole_max, std::size_t fraction_max) {
  const auto number = read_number(text);
  if (!number) return refuse("is no JSON number");
  std::string digits(number->whole);
  digits.append(number->fraction);
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  if (digits.empty()) return Decimal();

  const auto last = digits.find_last_not_of('0');
  const auto trailing = digits.size() - last - 1;
  digits.resize(last + 1);
  // Digits after the point of what is left; negative: zeros before it.
  const auto scale = static_cast<std::int64_t>(number->fraction.size()) - number->exponent -
                     static_cast<std::int64_t>(trailing);
  const auto whole = static_cast<std::int64_t>(digits.size()) - scale;
  if (whole > static_cast<std::int64_t>(whole_max)) {
    return refuse(fmt::format("has more than {} digits before the point", whole_max));
  }
  if (scale > static_cast<std::int64_t>(fraction_max)) {
    return refuse(fmt::format("has more than {} digits after the point", fraction_max));
  }
  if (scale < 0) digits.append(static_cast<std::size_t>(-scale), '0');
  return of(number->negative, std::move(digits), static_cast<std::size_t>(std::max<std::int64_t>(scale, 0)));
}

std::string Decimal::text() const {
  if (is_zero()) return "0";
  std::string text = negative_ ? "-" : "";
  if (digits_.size() <= scale_) {
    text += "0.";
    text.append(scale_ - digits_.size(), '0');
    return text += digits_;
  }
  const auto whole = digits_.size() - scale_;
  text.append(digits_, 0, whole);
  if (scale_ > 0) {
    text += '.';
    text.append(digits_, whole);
  }
  return text;
}

std::strong_ordering Decimal::operator<=>(const Decimal& other) const {
  if (negative_ != other.negative_) {
    return negative_ ? std::strong_ordering::less : std::strong_ordering::greater;
  }
  const auto& smaller = negative_ ? other : *this;
  const auto& larger = negative_ ? *this : other;
  const auto scale = std::max(scale_, other.scale_);
  auto a = smaller.digits_;
  auto b = larger.digits_;
  if (!a.empty()) a.append(scale - smaller.scale_, '0');
  if (!b.empty()) b.append(scale - larger.scale_, '0');
  if (a.size() != b.size()) return a.size() <=> b.size();
  return a.compare(b) <=> 0;
}

Decimal operator+(const Decimal& a, const Decimal& b) {
  const auto scale = std::max(a.scale_, b.scale_);
  const cpp_int sum =
      widened(a.digits_, scale - a.scale_, a.negative_) + widened(b.digits_, scale - b.scale_, b.negative_);
  return Decimal::of(sum < 0, cpp_int(abs(sum)).str(), scale);
}

Decimal operator-(const Decimal& a, const Decimal& b) {
  auto negated = b;
  negated.negative_ = !b.negative_ && !b.is_zero();
  return a + negated;
}

Decimal operator*(const Decimal& a, const Decimal& b) {
  const cpp_int product = widened(a.digits_, 0, false) * widened(b.digits_, 0, false);
  return Decimal::of(a.negative_ != b.negative_, product.str(), a.scale_ + b.scale_);
}

Decimal Decimal::rounded(std::size_t digits) const {
  if (scale_ <= digits) return *this;
  const auto kept = divide_rounding(widened(digits_, 0, false), power_of_ten(scale_ - digits));
  return of(negative_, kept.str(), digits);
}

Decimal Decimal::divided_by(const Decimal& divisor, std::size_t digits) const {
  if (divisor.is_zero()) throw std::domain_error("a decimal was divided by zero");
  const cpp_int above = widened(digits_, 0, false) * power_of_ten(divisor.scale_ + digits);
  const cpp_int below = widened(divisor.digits_, 0, false) * power_of_ten(scale_);
  return of(negative_ != divisor.negative_, divide_rounding(above, below).str(), digits);
}

bool Decimal::is_multiple_of(const Decimal& step) const {
  if (!step.is_positive()) throw std::domain_error("the step of a decimal is not positive");
  const auto scale = std::max(scale_, step.scale_);
  const cpp_int rest =
      widened(digits_, scale - scale_, false) % widened(step.digits_, scale - step.scale_, false);
  return rest == 0;
}

}  // namespace todoke::orders

// numeric in binary: a header (digit groups, weight, sign, scale) and groups of four decimal digits, most
// significant first.
#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "pg/codec.hpp"
#include "pg/error.hpp"

namespace todoke::pg {

namespace {
constexpr std::uint64_t kPositive = 0x0000;
constexpr std::uint64_t kNegative = 0x4000;
constexpr std::uint64_t kNan = 0xC000;
constexpr std::uint64_t kInfinity = 0xD000;
constexpr std::uint64_t kMinusInfinity = 0xF000;
constexpr std::size_t kGroupDigits = 4;
constexpr std::uint64_t kGroupMax = 9999;
// The server's own limits on digits before and after the point.
constexpr std::size_t kWholeDigitsMax = 131'072;
constexpr std::size_t kScaleMax = 16'383;

bool all_digits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

void put_header(std::string& out, std::size_t groups, std::int64_t weight, std::uint64_t sign,
                std::size_t scale) {
  put_int(out, groups, 2);
  put_int(out, static_cast<std::uint64_t>(weight), 2);
  put_int(out, sign, 2);
  put_int(out, scale, 2);
}
}  // namespace

void Codec<Numeric>::encode(std::string& out, const Numeric& value) {
  std::string_view text = value.text;
  if (text == "NaN") return put_header(out, 0, 0, kNan, 0);
  if (text == "Infinity") return put_header(out, 0, 0, kInfinity, 0);
  if (text == "-Infinity") return put_header(out, 0, 0, kMinusInfinity, 0);

  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const auto point = text.find('.');
  std::string whole(text.substr(0, point));
  std::string fraction(point == std::string_view::npos ? std::string_view() : text.substr(point + 1));
  if ((whole.empty() && fraction.empty()) || !all_digits(whole) || !all_digits(fraction) ||
      whole.size() > kWholeDigitsMax || fraction.size() > kScaleMax) {
    throw std::invalid_argument("not a decimal number");
  }
  const auto scale = fraction.size();
  whole.insert(0, (kGroupDigits - whole.size() % kGroupDigits) % kGroupDigits, '0');
  fraction.append((kGroupDigits - fraction.size() % kGroupDigits) % kGroupDigits, '0');

  std::vector<std::uint64_t> groups;
  const auto digits = whole + fraction;
  for (std::size_t i = 0; i < digits.size(); i += kGroupDigits)
    groups.push_back(std::stoul(digits.substr(i, kGroupDigits)));
  auto weight = static_cast<std::int64_t>(whole.size() / kGroupDigits) - 1;
  const auto first = std::find_if(groups.begin(), groups.end(), [](auto g) { return g != 0; });
  weight -= first - groups.begin();
  groups.erase(groups.begin(), first);
  while (!groups.empty() && groups.back() == 0) groups.pop_back();

  if (groups.empty()) return put_header(out, 0, 0, kPositive, scale);
  put_header(out, groups.size(), weight, negative ? kNegative : kPositive, scale);
  for (const auto group : groups) put_int(out, group, 2);
}

Numeric Codec<Numeric>::decode(ByteView in) {
  const auto count = static_cast<std::int64_t>(take_int(in, 2));
  const std::int64_t weight = static_cast<std::int16_t>(take_int(in, 2));
  const auto sign = take_int(in, 2);
  const auto scale = static_cast<std::size_t>(take_int(in, 2));
  if (sign == kNan) return {"NaN"};
  if (sign == kInfinity) return {"Infinity"};
  if (sign == kMinusInfinity) return {"-Infinity"};
  if (sign != kPositive && sign != kNegative) throw TypeMismatch("numeric with an unknown sign");

  std::vector<std::uint64_t> groups;
  for (std::int64_t i = 0; i < count; ++i) {
    groups.push_back(take_int(in, 2));
    if (groups.back() > kGroupMax) throw TypeMismatch("numeric with a digit group out of range");
  }
  const auto group_at = [&](std::int64_t i) {
    return i >= 0 && i < count ? groups[static_cast<std::size_t>(i)] : 0;
  };

  std::string text = weight < 0 ? "0" : fmt::format("{}", group_at(0));
  for (std::int64_t i = 1; i <= weight; ++i) text += fmt::format("{:04}", group_at(i));
  if (scale > 0) {
    std::string fraction;
    for (std::int64_t i = weight + 1; fraction.size() < scale; ++i)
      fraction += fmt::format("{:04}", group_at(i));
    text += '.' + fraction.substr(0, scale);
  }
  return {(sign == kNegative ? "-" : "") + text};
}

}  // namespace todoke::pg

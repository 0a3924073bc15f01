#include "base/bytes.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/random.h>
#include <system_error>
#include <vector>

namespace todoke {
namespace {

constexpr std::size_t kGetrandomMax = 256;  // up to this many bytes a call is never interrupted half way

constexpr std::uint8_t kNoDigit = 0xFF;

constexpr std::array<std::uint8_t, 256> make_digits() {
  std::array<std::uint8_t, 256> digits{};
  digits.fill(kNoDigit);
  for (std::uint8_t i = 0; i < 10; ++i) digits[static_cast<std::size_t>('0' + i)] = i;
  for (std::uint8_t i = 0; i < 6; ++i) {
    digits[static_cast<std::size_t>('a' + i)] = static_cast<std::uint8_t>(10 + i);
  }
  return digits;
}

constexpr auto kHexDigits = make_digits();

}  // namespace

void append_hex(std::string& out, std::span<const std::uint8_t> bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  const auto at = out.size();
  out.resize(at + bytes.size() * 2);
  char* to = out.data() + at;
  for (const auto byte : bytes) {
    *to++ = kDigits[byte >> 4];
    *to++ = kDigits[byte & 15];
  }
}

std::string to_hex(std::span<const std::uint8_t> bytes) {
  std::string hex;
  append_hex(hex, bytes);
  return hex;
}

bool from_hex(std::string_view hex, std::span<std::uint8_t> out) {
  if (hex.size() != out.size() * 2) return false;
  // A digit is below 16, "no digit" is not: one test at the end instead of one for each character.
  unsigned seen = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const unsigned high = kHexDigits[static_cast<unsigned char>(hex[2 * i])];
    const unsigned low = kHexDigits[static_cast<unsigned char>(hex[2 * i + 1])];
    seen |= high | low;
    out[i] = static_cast<std::uint8_t>((high << 4) | (low & 15));
  }
  return seen < 16;
}

void random_bytes(std::span<std::uint8_t> out) {
  while (!out.empty()) {
    const auto want = std::min(out.size(), kGetrandomMax);
    if (getrandom(out.data(), want, 0) != static_cast<ssize_t>(want)) {
      throw std::system_error(errno, std::generic_category(), "getrandom");
    }
    out = out.subspan(want);
  }
}

std::string random_hex(std::size_t bytes) {
  std::vector<std::uint8_t> buffer(bytes);
  random_bytes(buffer);
  return to_hex(buffer);
}

}  // namespace todoke

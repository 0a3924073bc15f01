#include "nostr/ids.hpp"

namespace todoke::nostr {
namespace {

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

constexpr auto kDigits = make_digits();

}  // namespace

bool decode_hex(std::string_view hex, std::span<std::uint8_t> out) {
  if (hex.size() != out.size() * 2) return false;
  // A digit is below 16, "no digit" is not: one test at the end instead of one for each character.
  unsigned seen = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const unsigned high = kDigits[static_cast<unsigned char>(hex[2 * i])];
    const unsigned low = kDigits[static_cast<unsigned char>(hex[2 * i + 1])];
    seen |= high | low;
    out[i] = static_cast<std::uint8_t>((high << 4) | (low & 15));
  }
  return seen < 16;
}

void append_hex(std::string& out, std::span<const std::uint8_t> bytes) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  const auto at = out.size();
  out.resize(at + bytes.size() * 2);
  char* to = out.data() + at;
  for (const auto byte : bytes) {
    *to++ = kHex[byte >> 4];
    *to++ = kHex[byte & 15];
  }
}

}  // namespace todoke::nostr

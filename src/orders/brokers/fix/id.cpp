#include "orders/brokers/fix/id.hpp"

#include <algorithm>
#include <cstdint>

#include "base/sha256.hpp"

namespace todoke::orders {
namespace {

bool is_plain(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

template <class Bytes>
std::string base32(const Bytes& bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
  std::string text;
  std::uint32_t buffer = 0;
  unsigned bits = 0;
  for (const std::uint8_t byte : bytes) {
    buffer = (buffer << 8U) | byte;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += kDigits[(buffer >> bits) & 31U];
    }
  }
  if (bits > 0) text += kDigits[(buffer << (5 - bits)) & 31U];
  return text;
}

}  // namespace

std::string cl_ord_id(std::string_view key, std::size_t length_max) {
  if (key.size() <= length_max && std::all_of(key.begin(), key.end(), is_plain)) return std::string(key);
  return base32(sha256({key})).substr(0, length_max);
}

}  // namespace todoke::orders

#include "base/bytes.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/random.h>
#include <system_error>
#include <vector>

namespace todoke {
namespace {

constexpr std::size_t kGetrandomMax = 256;  // up to this many bytes a call is never interrupted half way

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::string to_hex(std::span<const std::uint8_t> bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (auto byte : bytes) {
    hex.push_back(kDigits[byte >> 4]);
    hex.push_back(kDigits[byte & 15]);
  }
  return hex;
}

bool from_hex(std::string_view hex, std::span<std::uint8_t> out) {
  if (hex.size() != out.size() * 2) return false;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const int high = digit(hex[2 * i]);
    const int low = digit(hex[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    out[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return true;
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

#include "base/base64.hpp"

#include <array>
#include <cstddef>

namespace todoke {
namespace {

constexpr std::string_view kStandardAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kUrlAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr unsigned kSextet = 6;
constexpr unsigned kOctet = 8;
constexpr std::uint32_t kSextetMask = 63;
constexpr std::size_t kGroup = 4;  // characters for three bytes
constexpr std::int8_t kNoSextet = -1;

using Sextets = std::array<std::int8_t, 256>;

constexpr Sextets sextets_of(std::string_view alphabet) {
  Sextets sextets{};
  sextets.fill(kNoSextet);
  for (std::size_t i = 0; i < alphabet.size(); ++i) {
    sextets.at(static_cast<unsigned char>(alphabet[i])) = static_cast<std::int8_t>(i);
  }
  return sextets;
}

constexpr Sextets kStandardSextets = sextets_of(kStandardAlphabet);
constexpr Sextets kUrlSextets = sextets_of(kUrlAlphabet);

// The text without its padding; nothing where that is not what the length asks for.
std::optional<std::string_view> without_padding(std::string_view text) {
  const auto whole = text.size();
  while (text.ends_with('=')) text.remove_suffix(1);
  const bool is_padded = whole != text.size();
  if (is_padded && (whole % kGroup != 0 || whole - text.size() > 2)) return std::nullopt;
  if (text.size() % kGroup == 1) return std::nullopt;
  return text;
}

}  // namespace

std::string to_base64(std::span<const std::uint8_t> bytes, Base64 alphabet) {
  const auto letters = alphabet == Base64::standard ? kStandardAlphabet : kUrlAlphabet;
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * kGroup);
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const auto byte : bytes) {
    bits = bits << kOctet | byte;
    for (count += kOctet; count >= kSextet; count -= kSextet)
      out += letters[bits >> (count - kSextet) & kSextetMask];
  }
  if (count > 0) out += letters[bits << (kSextet - count) & kSextetMask];
  while (alphabet == Base64::standard && out.size() % kGroup != 0) out += '=';
  return out;
}

std::optional<std::string> from_base64(std::string_view text, Base64 alphabet) {
  const auto& sextets = alphabet == Base64::standard ? kStandardSextets : kUrlSextets;
  const auto bare = without_padding(text);
  if (!bare) return std::nullopt;
  std::string out;
  out.reserve(bare->size() * 3 / kGroup);
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : *bare) {
    const auto sextet = sextets[static_cast<unsigned char>(c)];
    if (sextet == kNoSextet) return std::nullopt;
    bits = bits << kSextet | static_cast<std::uint32_t>(sextet);
    count += kSextet;
    if (count < kOctet) continue;
    count -= kOctet;
    out += static_cast<char>(static_cast<unsigned char>(bits >> count));
  }
  if ((bits & ((1U << count) - 1)) != 0) return std::nullopt;
  return out;
}

}  // namespace todoke

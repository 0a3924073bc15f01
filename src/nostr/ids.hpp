// The fixed-size values of Nostr: event ids, public keys, signatures; and the log's sequence number. A value
// of these types is well-formed by construction: text becomes one only if it is lower-case hex of the right
// length. The byte order of the values is the order of their hex.
//
// The sender of an id or a key has chosen its bytes: std::hash is left undefined, HashSet and HashMap
// (base/hash_table.hpp) take them.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.hpp"

namespace todoke::nostr {

template <class Tag, std::size_t Size>
class FixedBytes {
 public:
  static constexpr std::size_t kSize = Size;
  static constexpr std::size_t kHexSize = 2 * Size;
  using Bytes = std::array<std::uint8_t, Size>;

  explicit constexpr FixedBytes(const Bytes& bytes) : bytes_(bytes) {}

  static std::optional<FixedBytes> from_hex(std::string_view hex) {
    Bytes bytes{};
    if (!todoke::from_hex(hex, bytes)) return std::nullopt;
    return FixedBytes(bytes);
  }

  [[nodiscard]] const Bytes& bytes() const { return bytes_; }
  [[nodiscard]] std::string hex() const { return to_hex(bytes_); }

  friend bool operator==(const FixedBytes& a, const FixedBytes& b) {
    return std::memcmp(a.bytes_.data(), b.bytes_.data(), Size) == 0;
  }
  friend std::strong_ordering operator<=>(const FixedBytes& a, const FixedBytes& b) {
    return std::memcmp(a.bytes_.data(), b.bytes_.data(), Size) <=> 0;
  }

 private:
  Bytes bytes_;
};

using EventId = FixedBytes<struct EventIdTag, 32>;
using Pubkey = FixedBytes<struct PubkeyTag, 32>;
using Signature = FixedBytes<struct SignatureTag, 64>;

// A position in the log.
struct Seq {
  std::int64_t value = 0;
  friend constexpr auto operator<=>(const Seq&, const Seq&) = default;
};

}  // namespace todoke::nostr

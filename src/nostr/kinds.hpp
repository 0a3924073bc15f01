// What a kind means for storage (NIP-01): which events replace which.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "nostr/ids.hpp"

namespace todoke::nostr {

class Event;

using Kind = std::uint16_t;  // 0..65535: no other kind can be expressed

inline constexpr Kind kDirectMessage = 4;
inline constexpr Kind kDeletion = 5;
inline constexpr Kind kVanish = 62;  // NIP-62
inline constexpr Kind kGiftWrap = 1059;
inline constexpr Kind kEphemeralGiftWrap = 21059;
inline constexpr Kind kAuth = 22242;
inline constexpr Kind kTrustProviders = 10040;
inline constexpr Kind kAssertionFirst = 30382;
inline constexpr Kind kAssertionLast = 30385;
inline constexpr Kind kNodeDescriptor = 39000;
inline constexpr Kind kTopicService = 39001;
inline constexpr Kind kReport = 39005;
inline constexpr Kind kLabel = 39006;

enum class KindClass : std::uint8_t { regular, replaceable, addressable, ephemeral };

// Kinds outside all of NIP-01's ranges are regular; 41 is one like any other.
constexpr KindClass class_of(Kind kind) {
  if (kind == 0 || kind == 3 || (kind >= 10000 && kind < 20000)) return KindClass::replaceable;
  if (kind >= 20000 && kind < 30000) return KindClass::ephemeral;
  if (kind >= 30000 && kind < 40000) return KindClass::addressable;
  return KindClass::regular;
}

// Key envelopes, invitations and join requests travel between peers only.
constexpr bool is_p2p_only(Kind kind) {
  return kind >= 39020 && kind <= 39022;
}

// Direct messages and gift wraps: only their author and their recipients may see them. The recipients are
// named in `p` tags (recipients.hpp).
inline constexpr std::array<Kind, 3> kPrivateKinds = {kDirectMessage, kGiftWrap, kEphemeralGiftWrap};

constexpr bool is_private(Kind kind) {
  return kind == kDirectMessage || kind == kGiftWrap || kind == kEphemeralGiftWrap;
}

// Names what versions of a replaceable or addressable event have in common: `<kind>:<pubkey>:<d>`, with an
// empty d for replaceable kinds.
struct Address {
  Kind kind;
  Pubkey pubkey;
  std::string d;

  [[nodiscard]] std::string text() const;
  // The value of an `a` tag. Nothing for kinds that have no address, and for a replaceable kind with a d.
  static std::optional<Address> parse(std::string_view text);

  friend bool operator==(const Address&, const Address&) = default;
};

// Nothing for regular and ephemeral events. The first `d` counts; a missing one is the empty one.
std::optional<Address> address_of(const Event& event);

}  // namespace todoke::nostr

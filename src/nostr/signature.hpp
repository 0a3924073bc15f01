// BIP-340 signatures. One precomputed context for the process; every function may be called from any thread.
// A verification costs 44 us, which is nearly all that checking an event costs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nostr/event.hpp"

namespace todoke::nostr {

// False also for a pubkey that is no point of the curve.
bool verify(const Pubkey& pubkey, const EventId& message, const Signature& signature);

inline bool has_right_signature(const Event& event) {
  return verify(event.pubkey(), event.id(), event.sig());
}

// Wiped when it dies; never printed.
class SecretKey {
 public:
  static constexpr std::size_t kSize = 32;

  static SecretKey generate();
  // Nothing for text that is no 64 lower-case hex digits, zero, or beyond the curve's order.
  static std::optional<SecretKey> from_hex(std::string_view hex);

  SecretKey(const SecretKey&) = default;
  SecretKey& operator=(const SecretKey&) = default;
  ~SecretKey();

  [[nodiscard]] const Pubkey& pubkey() const { return pubkey_; }
  // `aux` protects the key against an observer of the machine's timing and power; fresh random bytes unless
  // given.
  [[nodiscard]] Signature sign(const EventId& message) const;
  [[nodiscard]] Signature sign(const EventId& message, const std::array<std::uint8_t, 32>& aux) const;

 private:
  using Bytes = std::array<std::uint8_t, kSize>;
  SecretKey(const Bytes& bytes, const Pubkey& pubkey) : bytes_(bytes), pubkey_(pubkey) {}
  static std::optional<SecretKey> from_bytes(const Bytes& bytes);

  Bytes bytes_;
  Pubkey pubkey_;
};

// What an author decides about an event.
struct EventDraft {
  std::int64_t created_at = 0;
  Kind kind = 1;
  std::vector<std::vector<std::string>> tags;
  std::string content;
};

// The finished event. Throws std::invalid_argument for text that is no UTF-8.
Event sign_event(const EventDraft& draft, const SecretKey& key);

}  // namespace todoke::nostr

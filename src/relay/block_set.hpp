// What the operator keeps out, as one immutable value: events by their author, their id or a topic,
// connections by their address. Readers ask it for every event and every connection: a hash look-up each, one
// more for each `t` tag where topics are blocked, and for an address one for each length of prefix in use.
// Pure; time is an argument.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/hash_table.hpp"
#include "nostr/event.hpp"
#include "nostr/texts.hpp"

namespace todoke::relay {

enum class BlockKind : std::uint8_t { pubkey, event, ip, topic };

std::string_view to_string(BlockKind kind);
std::optional<BlockKind> block_kind(std::string_view text);

// The one form of what a person writes: hex in lower case, an address or a block of addresses as
// cn_relay.blocks has them (10.0.0.0/8). A topic id is taken as it is.
Expected<std::string> block_value(BlockKind kind, std::string_view text);

class BlockSet {
 public:
  // Memory: about 150 bytes for each, so 15 MB, and twice that while a new set is read.
  static constexpr std::size_t kBlocksMax = 100'000;

  // `until`: when it ends by itself. False: the value is of no form that block_value gives.
  bool add(BlockKind kind, std::string_view value, std::optional<SystemTime> until);

  // Why an event is kept out.
  [[nodiscard]] std::optional<nostr::Reason> refusal_of(const nostr::Event& event,
                                                        std::chrono::sys_seconds now) const;
  [[nodiscard]] bool has_address(std::string_view ip, std::chrono::sys_seconds now) const;

  [[nodiscard]] std::size_t size(BlockKind kind) const;
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] bool has_same_addresses(const BlockSet& other) const { return networks_ == other.networks_; }

 private:
  // When it ends.
  template <class Key>
  using Until = HashMap<Key, SystemTime>;

  Until<nostr::Pubkey> authors_;
  Until<nostr::EventId> events_;
  Until<std::string> topics_;
  Until<std::string> networks_;  // as net::network_of gives them
  std::set<unsigned> prefixes_;  // lengths in use, of both families
};

}  // namespace todoke::relay

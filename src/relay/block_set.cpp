#include "relay/block_set.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "net/client_network.hpp"
#include "net/proxies.hpp"

namespace todoke::relay {
namespace {

constexpr std::size_t kTopicBytesMax = 1024;  // as in the table
// A shorter prefix is a slip: 0.0.0.0/0 would block everybody, the operator among them.
constexpr unsigned kV4PrefixMin = 8;
constexpr unsigned kV6PrefixMin = 16;
constexpr unsigned kV4PrefixMax = 32;
constexpr unsigned kV6PrefixMax = 128;

constexpr std::array<std::pair<BlockKind, std::string_view>, 4> kKindNames{{{BlockKind::pubkey, "pubkey"},
                                                                            {BlockKind::event, "event"},
                                                                            {BlockKind::ip, "ip"},
                                                                            {BlockKind::topic, "topic"}}};

struct AddressBlock {
  std::string network;
  unsigned bits;
};

Expected<AddressBlock> address_block(std::string_view text) {
  const auto is_block = net::TrustedProxies::parse(std::array{std::string(text)});
  if (!is_block) return tl::unexpected(is_block.error());
  std::string_view digits = text;
  const auto address = trimmed(cut_until(digits, '/'));
  const auto ip = net::parse_ip(address).value();
  const bool is_v4 = net::is_v4(ip);
  unsigned bits = is_v4 ? kV4PrefixMax : kV6PrefixMax;
  digits = trimmed(digits);
  if (!digits.empty()) std::from_chars(digits.data(), digits.data() + digits.size(), bits);
  const auto least = is_v4 ? kV4PrefixMin : kV6PrefixMin;
  if (bits < least)
    return refuse(fmt::format("'{}' blocks too many: /{} is the shortest prefix", text, least));
  return AddressBlock{net::network_of(address, {bits, bits}), bits};
}

bool holds(SystemTime until, std::chrono::sys_seconds now) {
  return until > now;
}

template <class Map, class Key>
bool is_in(const Map& map, const Key& key, std::chrono::sys_seconds now) {
  if (map.empty()) return false;
  const auto found = map.find(key);
  return found != map.end() && holds(found->second, now);
}

}  // namespace

std::string_view to_string(BlockKind kind) {
  return kKindNames[static_cast<std::size_t>(kind)].second;
}

std::optional<BlockKind> block_kind(std::string_view text) {
  for (const auto& [kind, name] : kKindNames) {
    if (name == text) return kind;
  }
  return std::nullopt;
}

Expected<std::string> block_value(BlockKind kind, std::string_view text) {
  if (kind == BlockKind::topic) {
    if (text.empty() || text.size() > kTopicBytesMax) return refuse("a topic has 1 to 1024 bytes");
    return std::string(text);
  }
  if (kind == BlockKind::ip) {
    const auto block = address_block(text);
    if (!block) return tl::unexpected(block.error());
    return block->network;
  }
  std::string hex(text);
  std::transform(hex.begin(), hex.end(), hex.begin(), lower);
  // A public key and an id have the same form.
  if (!nostr::EventId::from_hex(hex)) {
    return refuse(fmt::format("'{}' is no {}: 64 hex digits", text,
                              kind == BlockKind::pubkey ? "public key" : "event id"));
  }
  return hex;
}

bool BlockSet::add(BlockKind kind, std::string_view value, std::optional<SystemTime> until) {
  const auto ends = until.value_or(SystemTime::max());
  switch (kind) {
    case BlockKind::pubkey: {
      const auto key = nostr::Pubkey::from_hex(value);
      if (key) authors_.insert_or_assign(*key, ends);
      return key.has_value();
    }
    case BlockKind::event: {
      const auto id = nostr::EventId::from_hex(value);
      if (id) events_.insert_or_assign(*id, ends);
      return id.has_value();
    }
    case BlockKind::ip: {
      auto block = address_block(value);
      if (!block) return false;
      prefixes_.insert(block->bits);
      networks_.insert_or_assign(std::move(block->network), ends);
      return true;
    }
    case BlockKind::topic:
      topics_.insert_or_assign(std::string(value), ends);
      return true;
  }
  return false;
}

std::optional<nostr::Reason> BlockSet::refusal_of(const nostr::Event& event,
                                                  std::chrono::sys_seconds now) const {
  if (is_in(authors_, event.pubkey(), now)) return nostr::Reason::author_blocked;
  if (is_in(events_, event.id(), now)) return nostr::Reason::event_blocked;
  if (topics_.empty()) return std::nullopt;
  const auto tags = event.tags();
  const bool is_blocked = std::any_of(tags.begin(), tags.end(), [&](const auto& tag) {
    return tag.name() == "t" && is_in(topics_, tag.value(), now);
  });
  return is_blocked ? std::optional(nostr::Reason::topic_blocked) : std::nullopt;
}

bool BlockSet::has_address(std::string_view ip, std::chrono::sys_seconds now) const {
  return std::any_of(prefixes_.begin(), prefixes_.end(),
                     [&](unsigned bits) { return is_in(networks_, net::network_of(ip, {bits, bits}), now); });
}

std::size_t BlockSet::size(BlockKind kind) const {
  switch (kind) {
    case BlockKind::pubkey:
      return authors_.size();
    case BlockKind::event:
      return events_.size();
    case BlockKind::ip:
      return networks_.size();
    case BlockKind::topic:
      return topics_.size();
  }
  return 0;
}

std::size_t BlockSet::size() const {
  return authors_.size() + events_.size() + networks_.size() + topics_.size();
}

}  // namespace todoke::relay

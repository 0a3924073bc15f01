#include "relay/subscription_index.hpp"

#include <algorithm>
#include <string_view>

namespace todoke::relay::detail {
namespace {

// What a list is worth: the fewer values, the better; but a kind is shared by far more events than an id, an
// author or a tag's value.
constexpr std::size_t kKindWeight = 1'000;

std::string key_of(std::string_view space, std::string_view value) {
  std::string key(space);
  key += ':';
  key += value;
  return key;
}

template <class Bytes>
std::string bytes_key(std::string_view space, const Bytes& value) {
  const auto& bytes = value.bytes();
  return key_of(space, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::string kind_key(nostr::Kind kind) {
  return key_of("k", std::to_string(kind));
}

std::string tag_key(char letter, std::string_view value) {
  return key_of(std::string{'#', letter}, value);
}

constexpr std::string_view kEverything = "*";

}  // namespace

std::vector<std::string> index_keys(const nostr::Filter& filter) {
  if (filter.search) return {};  // ranked among what is stored; what comes has no rank yet
  std::vector<std::string> best{std::string(kEverything)};
  auto best_weight = static_cast<std::size_t>(-1);
  const auto offer = [&](std::size_t size, std::size_t weight, const auto& make_keys) {
    if (size * weight >= best_weight && size != 0) return;
    best_weight = size * weight;
    best = make_keys();
  };
  if (filter.ids) {
    offer(filter.ids->values().size(), 1, [&] {
      std::vector<std::string> keys;
      for (const auto& id : filter.ids->values()) keys.push_back(bytes_key("i", id));
      return keys;
    });
  }
  if (filter.authors) {
    offer(filter.authors->values().size(), 1, [&] {
      std::vector<std::string> keys;
      for (const auto& author : filter.authors->values()) keys.push_back(bytes_key("a", author));
      return keys;
    });
  }
  for (const auto& tag : filter.tags) {
    offer(tag.values.values().size(), 1, [&] {
      std::vector<std::string> keys;
      for (const auto& value : tag.values.values()) keys.push_back(tag_key(tag.letter, value));
      return keys;
    });
  }
  if (filter.kinds) {
    offer(filter.kinds->values().size(), kKindWeight, [&] {
      std::vector<std::string> keys;
      for (const auto kind : filter.kinds->values()) keys.push_back(kind_key(kind));
      return keys;
    });
  }
  return best;
}

std::vector<std::string> event_keys(const nostr::Event& event) {
  std::vector<std::string> keys{std::string(kEverything), bytes_key("i", event.id()),
                                bytes_key("a", event.pubkey()), kind_key(event.kind())};
  for (const auto tag : event.tags()) {
    if (tag.size() > 1 && tag.name().size() == 1) keys.push_back(tag_key(tag.name()[0], tag[1]));
  }
  // A tag may stand twice in an event.
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

}  // namespace todoke::relay::detail

namespace todoke::relay {
namespace {

// An entry under a key that no other filter has: the key's text, its node, its bucket, its slot.
constexpr std::size_t kEntryBytes = 200;
// What an allocation takes beyond what was asked for.
constexpr std::size_t kAllocationBytes = 16;

std::size_t text_bytes(const std::string& text) {
  constexpr auto kObject = sizeof(std::string);
  // A short text is part of the object.
  return kObject + (text.capacity() < kObject / 2 ? 0 : text.capacity() + kAllocationBytes);
}

}  // namespace

std::size_t memory_of(std::span<const nostr::Filter> filters) {
  std::size_t bytes = 0;
  for (const auto& filter : filters) {
    bytes += sizeof filter + detail::index_keys(filter).size() * kEntryBytes;
    if (filter.ids) bytes += filter.ids->values().size() * sizeof(nostr::EventId);
    if (filter.authors) bytes += filter.authors->values().size() * sizeof(nostr::Pubkey);
    if (filter.kinds) bytes += filter.kinds->values().size() * sizeof(nostr::Kind);
    if (filter.search) bytes += text_bytes(*filter.search);
    for (const auto& tag : filter.tags) {
      bytes += sizeof tag;
      for (const auto& value : tag.values.values()) bytes += text_bytes(value);
    }
  }
  return bytes;
}

}  // namespace todoke::relay

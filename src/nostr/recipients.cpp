#include "nostr/recipients.hpp"

#include <algorithm>

namespace todoke::nostr {
namespace {

constexpr std::string_view kRecipientTag = "p";

}  // namespace

std::vector<Pubkey> recipients_of(const Event& event) {
  std::vector<Pubkey> keys;
  if (!event.may_have_tag('p')) return keys;
  for (const auto tag : event.tags()) {
    if (tag.name() != kRecipientTag) continue;
    if (const auto key = Pubkey::from_hex(tag.value())) keys.push_back(*key);
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

bool is_party(const Event& event, std::span<const Pubkey> keys) {
  if (keys.empty()) return false;
  const auto is_one = [&](const Pubkey& key) {
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  };
  if (is_one(event.pubkey())) return true;
  if (!event.may_have_tag('p')) return false;
  const auto tags = event.tags();
  return std::any_of(tags.begin(), tags.end(), [&](const Event::Tag& tag) {
    if (tag.name() != kRecipientTag) return false;
    const auto key = Pubkey::from_hex(tag.value());
    return key && is_one(*key);
  });
}

bool names_private_kinds(std::span<const Filter> filters) {
  return std::any_of(filters.begin(), filters.end(), [](const Filter& filter) {
    return filter.kinds &&
           std::any_of(filter.kinds->values().begin(), filter.kinds->values().end(), is_private);
  });
}

bool names_only_private_kinds(std::span<const Filter> filters) {
  return std::all_of(filters.begin(), filters.end(), [](const Filter& filter) {
    return filter.kinds && !filter.kinds->empty() &&
           std::all_of(filter.kinds->values().begin(), filter.kinds->values().end(), is_private);
  });
}

}  // namespace todoke::nostr

#include "nostr/filter.hpp"

namespace todoke::nostr {
namespace {

bool matches_tag(const TagFilter& filter, const Event& event) {
  if (!event.may_have_tag(filter.letter)) return false;
  for (const auto tag : event.tags()) {
    if (tag.size() < 2) continue;
    const auto name = tag[0];
    if (name.size() == 1 && name[0] == filter.letter && filter.values.contains(tag[1])) return true;
  }
  return false;
}

}  // namespace

const SortedSet<std::string>* Filter::tag(char letter) const {
  for (const auto& filter : tags) {
    if (filter.letter == letter) return &filter.values;
  }
  return nullptr;
}

bool matches(const Filter& filter, const Event& event) {
  if (filter.kinds && !filter.kinds->contains(event.kind())) return false;
  if (filter.since && event.created_at() < *filter.since) return false;
  if (filter.until && event.created_at() > *filter.until) return false;
  if (filter.authors && !filter.authors->contains(event.pubkey())) return false;
  if (filter.ids && !filter.ids->contains(event.id())) return false;
  return std::all_of(filter.tags.begin(), filter.tags.end(),
                     [&](const TagFilter& tag) { return matches_tag(tag, event); });
}

bool matches_any(std::span<const Filter> filters, const Event& event) {
  return std::any_of(filters.begin(), filters.end(),
                     [&](const Filter& filter) { return matches(filter, event); });
}

}  // namespace todoke::nostr

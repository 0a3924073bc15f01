#include "relay/rights.hpp"

#include <algorithm>

namespace todoke::relay {
namespace {

bool has_agreed(const Rights& rights) {
  return !rights.is_disabled && !rights.lacks_consent;
}

}  // namespace

bool Allowance::has_disabled_key() const {
  return std::any_of(keys_.begin(), keys_.end(), [](const auto& key) { return key->is_disabled; });
}

std::optional<nostr::Reason> Allowance::refusal() const {
  if (has_disabled_key()) return nostr::Reason::account_disabled;
  if (std::any_of(keys_.begin(), keys_.end(), [](const auto& key) { return has_agreed(*key); })) return {};
  return nostr::Reason::consent_required;
}

bool Allowance::may_use(std::string_view topic) const {
  return std::any_of(keys_.begin(), keys_.end(),
                     [&](const auto& key) { return has_agreed(*key) && key->topics.contains(topic); });
}

bool Allowance::may_search(std::string_view topic) const {
  return std::any_of(keys_.begin(), keys_.end(),
                     [&](const auto& key) { return has_agreed(*key) && key->searched.contains(topic); });
}

std::optional<nostr::Reason> Allowance::refusal_of(std::span<const nostr::Filter> filters,
                                                   nostr::TopicPolicy policy, const KeySet& own) const {
  if (const auto why = refusal()) return why;
  if (policy == nostr::TopicPolicy::open) return {};
  for (const auto& filter : filters) {
    const auto* asked = filter.tag('t');
    if (asked == nullptr && own.covers(filter)) continue;
    const bool is_search = filter.search.has_value();
    const auto is_open = [&](const auto& topic) { return is_search ? may_search(topic) : may_use(topic); };
    if (asked == nullptr || !std::all_of(asked->values().begin(), asked->values().end(), is_open))
      return nostr::Reason::subscription_required;
  }
  return {};
}

}  // namespace todoke::relay

#include "relay/admission.hpp"

#include <algorithm>
#include <utility>

#include "nostr/event_id.hpp"
#include "nostr/expiry.hpp"
#include "nostr/signature.hpp"
#include "nostr/tag_keys.hpp"
#include "nostr/topics.hpp"
#include "relay/cost.hpp"

namespace todoke::relay {

using nostr::KindClass;
using nostr::Reason;

tl::expected<Admitted, Reason> admit(EventPtr event, Source source, const nostr::Sender& sender,
                                     const nostr::RuleSettings& rules, const TopicSet& topics,
                                     const KnownIds& known, std::chrono::sys_seconds now,
                                     Signatures signatures) {
  if (const auto broken = nostr::broken_rule(*event, rules, sender, now)) return tl::unexpected(*broken);
  Admitted admitted;
  auto& incoming = admitted.incoming;
  for (const auto& topic : nostr::topics_of(*event, rules.reserved_topics)) {
    if (topics.is_enabled(topic.text())) incoming.topics.push_back(topic.text());
  }
  if (incoming.topics.empty()) {
    if (rules.policy == nostr::TopicPolicy::topics) return tl::unexpected(Reason::topic_not_enabled);
    incoming.topics.emplace_back(nostr::kGlobalTopic);
  }
  if (!nostr::has_right_id(*event)) return tl::unexpected(Reason::bad_id);
  if (known.contains(event->id())) return tl::unexpected(Reason::already_stored);
  if (signatures == Signatures::checked && !nostr::has_right_signature(*event))
    return tl::unexpected(Reason::bad_signature);

  const auto kind_class = nostr::class_of(event->kind());
  admitted.ephemeral = kind_class == KindClass::ephemeral;
  incoming.source = source;
  incoming.expires_at = nostr::expiry_of(*event).value();
  incoming.non_public = nostr::scope_of(*event).value() == nostr::Scope::non_public;
  incoming.kept = kind_class != KindClass::regular || event->kind() == nostr::kDeletion ||
                  std::any_of(incoming.topics.begin(), incoming.topics.end(),
                              [&](const auto& topic) { return topics.is_kept_longer(topic); });
  if (const auto address = nostr::address_of(*event)) incoming.effective_key = nostr::effective_key(*address);
  if (event->kind() == nostr::kDeletion) {
    incoming.targets = nostr::deletion_targets(*event);
    for (const auto& address : incoming.targets.addresses) {
      incoming.target_keys.push_back(nostr::effective_key(address));
    }
    std::sort(incoming.target_keys.begin(), incoming.target_keys.end());
    incoming.target_keys.erase(std::unique(incoming.target_keys.begin(), incoming.target_keys.end()),
                               incoming.target_keys.end());
  }
  incoming.rows = rows_of(*event);
  incoming.event = std::move(event);
  return admitted;
}

}  // namespace todoke::relay

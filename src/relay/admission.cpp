#include "relay/admission.hpp"

#include <algorithm>
#include <utility>

#include "nostr/event_id.hpp"
#include "nostr/expiry.hpp"
#include "nostr/recipients.hpp"
#include "nostr/signature.hpp"
#include "nostr/tag_keys.hpp"
#include "nostr/topics.hpp"
#include "relay/cost.hpp"

namespace todoke::relay {
namespace {

// Steps of outbox/pressure.hpp.
constexpr int kPressureStopsBackfill = 1;
constexpr int kPressureHolds = 2;

}  // namespace

using nostr::KindClass;
using nostr::Reason;

tl::expected<Admitted, Reason> admit(EventPtr event, Source source, const nostr::Sender& sender,
                                     const nostr::RuleSettings& rules, const BlockSet& blocks,
                                     const KeySet& own, const TopicSet& topics, const KnownIds& known,
                                     std::chrono::sys_seconds now, Signatures signatures) {
  const bool is_own = source == Source::node || own.contains(event->pubkey());
  auto judged = sender;
  judged.needs_no_topic = is_own;
  if (const auto broken = nostr::broken_rule(*event, rules, judged, now)) return tl::unexpected(*broken);
  if (const auto blocked = blocks.refusal_of(*event, now)) return tl::unexpected(*blocked);
  Admitted admitted;
  auto& incoming = admitted.incoming;
  // For those of its topics that take it.
  std::optional<Reason> refused;
  const auto offer = [&](std::string_view topic) {
    const auto why = topics.refusal_of(topic, source, event->created_at(), now);
    if (!why) incoming.topics.emplace_back(topic);
    if (why && !refused) refused = why;
  };
  for (const auto& topic : nostr::topics_of(*event, rules.reserved_topics)) {
    if (topics.is_enabled(topic.text())) offer(topic.text());
  }
  // A request to vanish needs no topic, nor does what the node signs: nothing of it is linked or held back.
  if (incoming.topics.empty() && (event->kind() == nostr::kVanish || is_own)) {
    incoming.topics.emplace_back(nostr::kGlobalTopic);
    incoming.linked = false;
  }
  if (incoming.topics.empty() && !refused && rules.policy == nostr::TopicPolicy::open)
    offer(nostr::kGlobalTopic);
  if (incoming.topics.empty()) return tl::unexpected(refused.value_or(Reason::topic_not_enabled));
  if (!nostr::has_right_id(*event)) return tl::unexpected(Reason::bad_id);
  if (known.contains(event->id())) return tl::unexpected(Reason::already_stored);
  if (signatures == Signatures::checked && !nostr::has_right_signature(*event))
    return tl::unexpected(Reason::bad_signature);

  incoming.own = is_own;
  const auto kind_class = nostr::class_of(event->kind());
  admitted.ephemeral = kind_class == KindClass::ephemeral;
  incoming.source = source;
  incoming.expires_at = nostr::expiry_of(*event).value();
  incoming.non_public = nostr::scope_of(*event).value() == nostr::Scope::non_public;
  incoming.kept = kind_class != KindClass::regular || event->kind() == nostr::kDeletion ||
                  event->kind() == nostr::kVanish ||
                  std::any_of(incoming.topics.begin(), incoming.topics.end(),
                              [&](const auto& topic) { return topics.is_kept_longer(topic); });
  incoming.dedupe_days = topics.dedupe_days(incoming.topics);
  if (const auto address = nostr::address_of(*event)) incoming.effective_key = nostr::effective_key(*address);
  if (event->kind() == nostr::kDeletion) {
    incoming.tombstone_days = topics.tombstone_days(incoming.topics);
    incoming.targets = nostr::deletion_targets(*event);
    for (const auto& address : incoming.targets.addresses) {
      incoming.target_keys.push_back(nostr::effective_key(address));
    }
    std::sort(incoming.target_keys.begin(), incoming.target_keys.end());
    incoming.target_keys.erase(std::unique(incoming.target_keys.begin(), incoming.target_keys.end()),
                               incoming.target_keys.end());
  }
  if (event->kind() == nostr::kGiftWrap) incoming.recipients = nostr::recipients_of(*event);
  incoming.rows = rows_of(*event);
  incoming.event = std::move(event);
  return admitted;
}

std::optional<Reason> held_back(const Incoming& incoming, const TopicSet& topics,
                                const outbox::Pressure& pressure) {
  // A request to vanish makes room.
  const bool vanishes = incoming.event->kind() == nostr::kVanish;
  if (pressure.is_node_full() && !vanishes) return Reason::capacity;
  const auto level = pressure.level();
  if (level >= kPressureStopsBackfill && incoming.source == Source::backfill) return Reason::no_backfill;
  const bool is_low = std::all_of(incoming.topics.begin(), incoming.topics.end(),
                                  [&](const auto& topic) { return topics.is_low_priority(topic); });
  if (level >= kPressureHolds && is_low && !vanishes) return Reason::capacity;
  return std::nullopt;
}

}  // namespace todoke::relay

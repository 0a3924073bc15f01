#include "relay/gossip_door.hpp"

#include <algorithm>
#include <utility>

#include "nostr/event_parse.hpp"
#include "nostr/topics.hpp"
#include "relay/ephemeral.hpp"
#include "relay/policy.hpp"
#include "relay/writer.hpp"

namespace todoke::relay {
namespace {

using nostr::Reason;
using outbox::GossipVerdict;
using outbox::GossipWay;

constexpr std::string_view kOtherTopic = "other_topic";

// Refusals for which the neighbour that passed the event on is not to blame: another node may take it.
bool is_of_this_node(Reason reason) {
  switch (reason) {
    case Reason::topic_not_enabled:
    case Reason::capacity:
    case Reason::storage_full:
    case Reason::too_old_for_topic:
    case Reason::no_backfill:
    case Reason::vanished:
    case Reason::author_blocked:
    case Reason::event_blocked:
    case Reason::topic_blocked:
    case Reason::vanish_elsewhere:
    case Reason::expired:
    case Reason::p2p_only:
    case Reason::scope_needs_auth:
    case Reason::protected_needs_auth:
      return true;
    default:
      return false;
  }
}

// What a neighbour has stored is old.
nostr::RuleSettings without_age(nostr::RuleSettings rules) {
  rules.past_max.reset();
  return rules;
}

bool names(const nostr::Event& event, std::string_view topic) {
  const auto tags = event.tags();
  return std::any_of(tags.begin(), tags.end(),
                     [&](const auto& tag) { return tag.name() == "t" && tag.value() == topic; });
}

}  // namespace

GossipDoor::GossipDoor(SessionServices& services)
    : services_(services),
      received_(services.metrics.received.with({std::string(to_string(Source::gossip))})),
      filled_(services.metrics.received.with({std::string(to_string(Source::backfill))})) {}

std::vector<outbox::GossipTopic> GossipDoor::topics() const {
  const auto set = services_.topics.topics();
  std::vector<outbox::GossipTopic> topics;
  topics.reserve(set->enabled().size());
  for (const auto& [id, topic] : set->enabled())
    topics.push_back({id, topic.low_priority, topic.allow_backfill});
  return topics;
}

GossipVerdict GossipDoor::refuse(Reason reason, std::optional<nostr::EventId> id) {
  services_.metrics.rejected.with({std::string(label_of(reason))}).add();
  const auto kind = is_of_this_node(reason) ? GossipVerdict::Kind::held : GossipVerdict::Kind::refused;
  return {kind, label_of(reason), id};
}

GossipVerdict GossipDoor::take(std::string_view json, const std::string& topic, GossipWay way,
                               const std::function<void()>& on_room) {
  const bool fills = way == GossipWay::fill;
  (fills ? filled_ : received_).add();
  const auto settings = services_.settings.load();
  auto parsed = nostr::parse_event(json, settings->limits.event);
  if (!parsed) return refuse(parsed.error().reason, std::nullopt);
  auto event = std::make_shared<const nostr::Event>(std::move(*parsed));
  const auto id = event->id();
  if (!names(*event, topic)) return {GossipVerdict::Kind::refused, kOtherTopic, id};
  const auto topics = services_.topics.topics();
  const auto blocks = services_.blocks.blocks();
  const auto now = services_.clock.now();
  const auto rules_of_fill = fills ? without_age(settings->rules) : nostr::RuleSettings();
  const auto& rules = fills ? rules_of_fill : settings->rules;
  auto admitted = admit(std::move(event), fills ? Source::backfill : Source::gossip, {}, rules, *blocks,
                        *services_.keys.keys(), *topics, services_.known, seconds_of(now));
  if (!admitted) {
    if (admitted.error() != Reason::already_stored) return refuse(admitted.error(), id);
    services_.metrics.dedupe_hits.add();
    services_.duplicates.hit(id, now);
    return {GossipVerdict::Kind::known, {}, id};
  }
  auto& incoming = admitted->incoming;
  if (const auto why = held_back(incoming, *topics, services_.pressure)) return refuse(*why, id);
  incoming.came_by = topic;
  if (services_.policy.is_on()) return ask_policy(std::move(*admitted), on_room);
  return take(std::move(*admitted), on_room);
}

GossipVerdict GossipDoor::ask_policy(Admitted admitted, const std::function<void()>& on_room) {
  const auto event = admitted.incoming.event;
  const PolicySource source{"Stream", admitted.incoming.came_by};
  auto tell = [this, admitted = std::move(admitted)](const PolicyVerdict& verdict) mutable {
    const bool failed = verdict.action == PolicyAction::failed;
    if (verdict.action == PolicyAction::accept || (failed && services_.policy.accepts_on_failure())) {
      take(std::move(admitted), [] {});
    } else {
      refuse(failed ? Reason::policy_failed : Reason::policy_refused, std::nullopt);
    }
  };
  const bool has_room = services_.policy.ask(event, source, std::move(tell), on_room);
  return {GossipVerdict::Kind::taken, {}, event->id(), !has_room};
}

GossipVerdict GossipDoor::take(Admitted admitted, const std::function<void()>& on_room) {
  auto& incoming = admitted.incoming;
  const auto id = incoming.event->id();
  if (admitted.ephemeral) {
    if (!services_.ephemeral.send(live_of(incoming))) {
      services_.metrics.dedupe_hits.add();
      return {GossipVerdict::Kind::known, {}, id};
    }
    tell_gossip(services_.gossip, incoming);
    return {GossipVerdict::Kind::taken, {}, id};
  }
  if (services_.storage.is_full()) return refuse(Reason::storage_full, id);
  incoming.on_outcome = [&services = services_, id](Outcome outcome) {
    if (outcome != Outcome::duplicate) return;
    services.metrics.dedupe_hits.add();
    services.duplicates.hit(id, services.clock.now());
  };
  const bool has_room = services_.writer.offer(std::move(incoming), on_room);
  return {GossipVerdict::Kind::taken, {}, id, !has_room};
}

void tell_gossip(outbox::GossipOut* bridge, const Incoming& incoming) {
  if (bridge == nullptr || incoming.source == Source::import) return;
  if (incoming.source == Source::backfill) return bridge->filled(incoming.topics);
  bridge->took({incoming.event, incoming.topics, incoming.non_public, incoming.came_by});
}

}  // namespace todoke::relay

#include "bootstrap/documents.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/json_writer.hpp"
#include "nostr/expiry.hpp"
#include "nostr/kind_rules.hpp"
#include "nostr/topics.hpp"

namespace todoke::bootstrap {
namespace {

using nostr::EventDraft;
using Tags = std::vector<std::vector<std::string>>;

constexpr std::string_view kExp = "exp";
// Roles that do something for a topic.
constexpr std::array<std::string_view, 4> kTopicRoles{"relay", "index", "moderation", "trust"};
constexpr std::string_view kScope = "public";

void add_endpoints(JsonWriter& json, const NodeFacts& facts) {
  json.key("endpoints").begin_object();
  if (!facts.relay_url.empty()) json.member("relay", facts.relay_url);
  if (!facts.api_url.empty()) json.member("api", facts.api_url);
  json.end_object();
}

std::string descriptor_content(const NodeFacts& facts, const NodeKeys& keys) {
  JsonWriter json;
  json.begin_object().member("schema", nostr::kNodeDescriptorSchema).member("name", facts.name);
  json.key("roles").begin_array();
  for (const auto& role : facts.roles) json.value(role);
  json.end_array();
  add_endpoints(json, facts);
  json.member("policy_url", facts.policy_url)
      .member("jurisdiction", facts.jurisdiction)
      .member("contact", facts.contact);
  json.key("services").begin_array();
  for (const auto algorithm : kAlgorithms) {
    json.begin_object()
        .member("algorithm", algorithm)
        .member("pubkey", keys.service(algorithm).pubkey().hex())
        .end_object();
  }
  json.end_array().end_object();
  return std::move(json).text();
}

EventDraft draft_of(nostr::Kind kind, std::string d, Tags more, std::string content) {
  EventDraft draft;
  draft.kind = kind;
  draft.tags = {{"d", std::move(d)}, {"k", "kukuri"}, {"ver", "1"}};
  draft.tags.insert(draft.tags.end(), std::make_move_iterator(more.begin()),
                    std::make_move_iterator(more.end()));
  draft.content = std::move(content);
  return draft;
}

EventDraft topic_service(const NodeFacts& facts, const std::string& topic, std::string_view role) {
  JsonWriter json;
  json.begin_object()
      .member("schema", nostr::kTopicServiceSchema)
      .member("topic", topic)
      .member("role", role)
      .member("scope", kScope);
  add_endpoints(json, facts);
  json.end_object();
  return draft_of(nostr::kTopicService, fmt::format("topic_service:{}:{}:{}", topic, role, kScope),
                  {{"t", topic}, {"role", std::string(role)}, {"scope", std::string(kScope)}},
                  std::move(json).text());
}

// Kind and `d`: what there is one of.
using Place = std::pair<nostr::Kind, std::string>;

Place place_of(const EventDraft& draft) {
  return {draft.kind, draft.tags.front()[1]};
}

Place place_of(const nostr::Event& event) {
  return {event.kind(), std::string(event.first_value("d").value_or(""))};
}

// All but when it expires.
Tags lasting_tags(const nostr::Event& event) {
  Tags tags;
  for (const auto tag : event.tags()) {
    if (tag.name() == kExp) continue;
    auto& texts = tags.emplace_back();
    for (std::size_t i = 0; i < tag.size(); ++i) texts.emplace_back(tag[i]);
  }
  return tags;
}

bool says_the_same(const nostr::Event& event, const EventDraft& draft) {
  return event.content() == draft.content && lasting_tags(event) == draft.tags;
}

bool is_half_over(const nostr::Event& event, std::chrono::seconds lifetime, std::chrono::sys_seconds now) {
  const auto expires_at = nostr::expiry_of(event);
  return !expires_at || !*expires_at || **expires_at - now.time_since_epoch().count() < lifetime.count() / 2;
}

}  // namespace

std::vector<EventDraft> documents(const NodeFacts& facts, const NodeKeys& keys,
                                  const std::vector<std::string>& topics) {
  std::vector<EventDraft> drafts{draft_of(nostr::kNodeDescriptor, "descriptor",
                                          {{"t", std::string(nostr::kGlobalTopic)}},
                                          descriptor_content(facts, keys))};
  for (const auto& topic : topics) {
    for (const auto role : kTopicRoles) {
      if (std::find(facts.roles.begin(), facts.roles.end(), role) != facts.roles.end())
        drafts.push_back(topic_service(facts, topic, role));
    }
  }
  return drafts;
}

Changes changes(const std::vector<EventDraft>& wanted, const std::vector<nostr::Event>& in_effect,
                std::chrono::seconds lifetime, std::chrono::sys_seconds now) {
  std::map<Place, const nostr::Event*> current;
  for (const auto& event : in_effect) current.emplace(place_of(event), &event);
  const auto seconds = now.time_since_epoch().count();
  Changes changes;
  for (const auto& draft : wanted) {
    const auto found = current.find(place_of(draft));
    const auto* event = found == current.end() ? nullptr : found->second;
    if (found != current.end()) current.erase(found);
    if (event != nullptr && says_the_same(*event, draft) && !is_half_over(*event, lifetime, now)) continue;
    auto& fresh = changes.to_sign.emplace_back(draft);
    // A version of the same second could lose against the one before.
    fresh.created_at = event == nullptr ? seconds : std::max(seconds, event->created_at() + 1);
    fresh.tags.push_back({std::string(kExp), std::to_string(seconds + lifetime.count())});
  }
  for (const auto& [place, event] : current) changes.to_withdraw.push_back(*event);
  return changes;
}

EventDraft withdrawal(const std::vector<nostr::Event>& events, std::chrono::sys_seconds now) {
  EventDraft draft;
  draft.kind = nostr::kDeletion;
  draft.created_at = now.time_since_epoch().count();
  std::set<nostr::Kind> kinds;
  std::set<std::string> topics;
  for (const auto& event : events) {
    draft.created_at = std::max(draft.created_at, event.created_at());
    draft.tags.push_back({"e", event.id().hex()});
    if (const auto address = nostr::address_of(event)) draft.tags.push_back({"a", address->text()});
    kinds.insert(event.kind());
    for (const auto& topic : nostr::topics_of(event)) topics.insert(topic.text());
  }
  for (const auto kind : kinds) draft.tags.push_back({"k", std::to_string(kind)});
  for (const auto& topic : topics) draft.tags.push_back({"t", topic});
  return draft;
}

}  // namespace todoke::bootstrap

#include "nostr/kind_rules.hpp"

#include <algorithm>
#include <array>
#include <string>

#include <simdjson.h>

#include "base/text.hpp"
#include "nostr/expiry.hpp"

namespace todoke::nostr {
namespace {

namespace dom = simdjson::dom;

std::optional<Reason> broken_mark(const Event& event) {
  if (event.first_value("k") != "kukuri") return Reason::k_not_kukuri;
  if (event.first_value("ver") != "1") return Reason::ver_not_1;
  return std::nullopt;
}

std::optional<Reason> broken_target(const Event& event) {
  const auto target = event.first_value("target");
  if (!target) return Reason::missing_target;
  const auto colon = target->find(':');
  const auto what = target->substr(0, colon);
  const auto hex = colon == std::string_view::npos ? std::string_view() : target->substr(colon + 1);
  if ((what != "event" && what != "pubkey") || !EventId::from_hex(hex)) return Reason::bad_target;
  return std::nullopt;
}

bool is_text(dom::object object, std::string_view key) {
  return object[key].is_string();
}

bool is_list_of_texts(dom::object object, std::string_view key) {
  dom::array list;
  if (object[key].get(list) != simdjson::SUCCESS) return false;
  return std::all_of(list.begin(), list.end(), [](dom::element item) { return item.is_string(); });
}

// A member that is absent and one of the wrong type are the same to a reader of the content.
std::optional<Reason> broken_content(const Event& event, std::string_view schema) {
  dom::parser parser;
  dom::object object;
  if (parser.parse(event.content().data(), event.content().size()).get(object) != simdjson::SUCCESS) {
    return Reason::content_not_object;
  }
  std::string_view named;
  if (object["schema"].get(named) != simdjson::SUCCESS || named != schema)
    return Reason::content_wrong_schema;
  if (schema != kNodeDescriptorSchema) return std::nullopt;

  const bool complete = is_text(object, "name") && is_list_of_texts(object, "roles") &&
                        (object["endpoints"].is_object() || object["endpoints"].is_array()) &&
                        is_text(object, "policy_url") && is_text(object, "jurisdiction") &&
                        is_text(object, "contact");
  return complete ? std::nullopt : std::optional(Reason::content_missing_member);
}

std::optional<Reason> broken_descriptor(const Event& event) {
  if (event.first_value("d") != "descriptor") return Reason::d_not_descriptor;
  if (!event.first_value("exp")) return Reason::missing_exp;
  return broken_content(event, kNodeDescriptorSchema);
}

std::optional<Reason> broken_topic_service(const Event& event) {
  const auto topic = event.first_value("t");
  const auto role = event.first_value("role");
  const auto scope = event.first_value("scope");
  if (!topic) return Reason::missing_topic;
  if (!role || role->empty()) return Reason::missing_role;
  if (!scope) return Reason::missing_scope;
  if (!is_scope(*scope)) return Reason::unknown_scope;
  std::string d = "topic_service:";
  d.append(*topic).append(":").append(*role).append(":").append(*scope);
  if (event.first_value("d") != d) return Reason::d_not_topic_service;
  if (!event.first_value("exp")) return Reason::missing_exp;
  return broken_content(event, kTopicServiceSchema);
}

std::optional<Reason> broken_report(const Event& event) {
  if (const auto broken = broken_target(event)) return broken;
  const auto reason = event.first_value("reason");
  if (!reason) return Reason::missing_reason;
  if (!is_report_reason(*reason)) return Reason::unknown_reason;
  return std::nullopt;
}

bool is_confidence(std::string_view text) {
  const auto value = parse_number<double>(text);
  return value && *value >= 0 && *value <= 1;
}

std::optional<Reason> broken_label(const Event& event) {
  if (const auto broken = broken_target(event)) return broken;
  const auto label = event.first_value("label");
  if (!label) return Reason::missing_label;
  if (!is_label(*label)) return Reason::unknown_label;
  if (!event.first_value("exp")) return Reason::missing_exp;
  if (!event.first_value("policy_url")) return Reason::missing_policy_url;
  if (!event.first_value("policy_ref")) return Reason::missing_policy_ref;
  const auto confidence = event.first_value("confidence");
  if (confidence && !is_confidence(*confidence)) return Reason::bad_confidence;
  return std::nullopt;
}

std::optional<Reason> broken_assertion(const Event& event) {
  if (!event.first_value("d")) return Reason::missing_d;
  if (!event.first_value("claim")) return Reason::missing_claim;
  const auto rank = event.first_value("rank");
  if (!rank) return Reason::missing_rank;
  const auto number = parse_decimal(*rank);
  if (!number || *number < 0 || *number > 100) return Reason::bad_rank;
  if (!event.first_value("expiration")) return Reason::missing_expiration;
  return std::nullopt;
}

// At least one `<kind>:rank` tag for a kind of assertion, which names a provider's key.
std::optional<Reason> broken_providers(const Event& event) {
  for (const auto tag : event.tags()) {
    const auto colon = tag.name().find(':');
    if (colon == std::string_view::npos || tag.name().substr(colon) != ":rank") continue;
    const auto kind = parse_decimal(tag.name().substr(0, colon));
    if (kind && *kind >= kAssertionFirst && *kind <= kAssertionLast && Pubkey::from_hex(tag.value())) {
      return std::nullopt;
    }
  }
  return Reason::missing_rank_provider;
}

}  // namespace

bool is_report_reason(std::string_view text) {
  static constexpr std::array<std::string_view, 5> kReasons = {"spam", "illegal", "harassment",
                                                               "impersonation", "nsfw"};
  return std::find(kReasons.begin(), kReasons.end(), text) != kReasons.end();
}

bool is_label(std::string_view text) {
  return text == "safe" || is_report_reason(text);
}

std::optional<Reason> broken_kind_rule(const Event& event) {
  const auto kind = event.kind();
  if (kind >= kAssertionFirst && kind <= kAssertionLast) return broken_assertion(event);
  if (kind == kTrustProviders) return broken_providers(event);
  if (kind < 39000 || kind > 39099) return std::nullopt;
  if (const auto broken = broken_mark(event)) return broken;
  switch (kind) {
    case kNodeDescriptor:
      return broken_descriptor(event);
    case kTopicService:
      return broken_topic_service(event);
    case kReport:
      return broken_report(event);
    case kLabel:
      return broken_label(event);
    default:
      return std::nullopt;
  }
}

}  // namespace todoke::nostr

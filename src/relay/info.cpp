#include "relay/info.hpp"

#include <algorithm>

#include "base/json_writer.hpp"
#include "net/config.hpp"
#include "nostr/wire.hpp"
#include "relay/config.hpp"

namespace todoke::relay {
namespace {

constexpr int kNips[] = {1, 9, 11, 13, 40, 42, 45, 59, 62, 67, 70, 77, 86};

void member_unless_empty(JsonWriter& json, std::string_view name, const std::string& value) {
  if (!value.empty()) json.member(name, value);
}

std::int64_t seconds_count(std::chrono::milliseconds time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time).count();
}

// A new connection must authenticate. Those that are older may have a grace.
bool auth_is_required(const Config& config, SystemTime now) {
  const std::chrono::sys_seconds enforce_at(std::chrono::seconds(config.get(keys::kEnforceAt)));
  return config.get(keys::kAuthMode) == "required" && now >= enforce_at;
}

// An event must fit into a message, too.
std::int64_t event_bytes_max(const Config& config) {
  constexpr std::string_view kEnvelope = R"(["EVENT",])";
  return std::min(config.get(keys::kEventBytesMax),
                  config.get(keys::kMessageBytesMax) - static_cast<std::int64_t>(kEnvelope.size()));
}

// What is left of the largest event beside the smallest that the policy takes. NIP-11 counts characters; this
// is exact for those that take one byte in JSON.
std::int64_t content_characters_max(const Config& config) {
  constexpr std::string_view kSmallest =
      R"({"id":"","pubkey":"","created_at":1700000000,"kind":1,"tags":[],"content":"","sig":""})";
  constexpr std::string_view kTopicTag = R"(["t","kukuri:global"])";
  constexpr auto kHex = nostr::EventId::kHexSize + nostr::Pubkey::kHexSize + nostr::Signature::kHexSize;
  auto smallest = kSmallest.size() + kHex;
  if (config.get(keys::kTopicPolicy) == "topics") smallest += kTopicTag.size();
  return event_bytes_max(config) - static_cast<std::int64_t>(smallest);
}

void write_limitation(JsonWriter& json, const Config& config, SystemTime now) {
  const bool auth_required = auth_is_required(config, now);
  const auto difficulty_min = config.get(keys::kDifficultyMin);
  json.key("limitation").begin_object();
  json.member("max_message_length", config.get(keys::kMessageBytesMax));
  json.member("max_subscriptions", config.get(keys::kSubscriptionsMax));
  json.member("max_filters", config.get(keys::kFiltersMax));
  json.member("max_limit", config.get(keys::kLimitMax));
  json.member("default_limit", config.get(keys::kLimitDefault));
  json.member("max_subid_length", nostr::SubId::kCharactersMax);
  json.member("max_event_tags", config.get(keys::kTagsMax));
  json.member("max_tags_length", config.get(keys::kTagsBytesMax));
  json.member("max_tag_values", nostr::EventLimits{}.tag_values_max);
  json.member("max_filter_values", nostr::FilterLimits{}.values_max);
  json.member("max_filter_tags", nostr::FilterLimits{}.tags_max);
  json.member("max_content_length", content_characters_max(config));
  json.member("max_event_length", event_bytes_max(config));
  json.member("min_pow_difficulty", difficulty_min);
  json.member("auth_required", auth_required);
  json.member("payment_required", false);
  json.member("restricted_writes",
              config.get(keys::kTopicPolicy) == "topics" || auth_required || difficulty_min > 0);
  if (const auto past = config.get(keys::kPastMax); past.count() > 0) {
    json.member("created_at_lower_limit", seconds_count(past));
  }
  json.member("created_at_upper_limit", seconds_count(config.get(keys::kFutureMax)));
  json.end_object();
}

void write_topics(JsonWriter& json, const Config& config) {
  json.key("topics").begin_object();
  json.member("policy", config.get(keys::kTopicPolicy));
  json.member("accept", config.get(keys::kAcceptTopics));
  json.member("network_id", config.get(keys::kNetworkId));
  json.key("reserved").begin_array();
  for (const auto& topic : config.get(keys::kReserved)) json.value(topic);
  json.end_array().end_object();
}

void write_rates(JsonWriter& json, const Config& config) {
  if (config.get(net::keys::kRates) == "off") return;
  json.key("rate_limits").begin_object();
  json.member("events_per_minute", config.get(keys::kEventsPerMinute));
  json.member("reqs_per_minute", config.get(keys::kReqsPerMinute));
  json.member("connections_per_minute", config.get(keys::kConnectionsPerMinute));
  json.end_object();
}

}  // namespace

std::string information_document(const Config& config, std::string_view version, SystemTime now) {
  JsonWriter json;
  json.begin_object();
  json.member("name", config.get(keys::kName));
  member_unless_empty(json, "description", config.get(keys::kDescription));
  member_unless_empty(json, "pubkey", config.get(keys::kPubkey));
  member_unless_empty(json, "contact", config.get(keys::kContact));
  member_unless_empty(json, "icon", config.get(keys::kIcon));
  member_unless_empty(json, "banner", config.get(keys::kBanner));
  member_unless_empty(json, "posting_policy", config.get(keys::kPostingPolicy));
  member_unless_empty(json, "privacy_policy", config.get(keys::kPrivacyPolicy));
  member_unless_empty(json, "terms_of_service", config.get(keys::kTermsOfService));
  member_unless_empty(json, "software", config.get(keys::kSoftware));
  json.member("version", version);
  json.key("supported_nips").begin_array();
  for (const auto nip : kNips) {
    json.value(nip);
    if (nip == 45 && search_is_on(config)) json.value(50);
  }
  json.end_array();
  write_limitation(json, config, now);
  write_topics(json, config);
  write_rates(json, config);
  json.end_object();
  return std::move(json).text();
}

}  // namespace todoke::relay

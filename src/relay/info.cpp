#include "relay/info.hpp"

#include "base/json_writer.hpp"
#include "net/config.hpp"
#include "nostr/wire.hpp"
#include "relay/config.hpp"

namespace todoke::relay {
namespace {

constexpr int kNips[] = {1, 9, 11, 13, 40, 42, 45, 67, 70};

void member_unless_empty(JsonWriter& json, std::string_view name, const std::string& value) {
  if (!value.empty()) json.member(name, value);
}

std::int64_t seconds(std::chrono::milliseconds time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time).count();
}

void write_limitation(JsonWriter& json, const Config& config) {
  const bool required = config.get(keys::kAuthMode) == "required";
  json.key("limitation").begin_object();
  json.member("max_message_length", config.get(keys::kMessageBytesMax));
  json.member("max_subscriptions", config.get(keys::kSubscriptionsMax));
  json.member("max_filters", config.get(keys::kFiltersMax));
  json.member("max_limit", config.get(keys::kLimitMax));
  json.member("default_limit", config.get(keys::kLimitDefault));
  json.member("max_subid_length", nostr::SubId::kCharactersMax);
  json.member("max_event_tags", config.get(keys::kTagsMax));
  json.member("max_content_length", config.get(keys::kEventBytesMax));
  json.member("max_event_length", config.get(keys::kEventBytesMax));
  json.member("min_pow_difficulty", config.get(keys::kDifficultyMin));
  json.member("auth_required", required);
  json.member("payment_required", false);
  json.member("restricted_writes", config.get(keys::kTopicPolicy) == "topics");
  if (const auto past = config.get(keys::kPastMax); past.count() > 0) {
    json.member("created_at_lower_limit", seconds(past));
  }
  json.member("created_at_upper_limit", seconds(config.get(keys::kFutureMax)));
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

std::string information_document(const Config& config, std::string_view version) {
  JsonWriter json;
  json.begin_object();
  json.member("name", config.get(keys::kName));
  member_unless_empty(json, "description", config.get(keys::kDescription));
  member_unless_empty(json, "pubkey", config.get(keys::kPubkey));
  member_unless_empty(json, "contact", config.get(keys::kContact));
  json.member("software", "todoke").member("version", version);
  json.key("supported_nips").begin_array();
  for (const auto nip : kNips) {
    json.value(nip);
    if (nip == 45 && search_is_on(config)) json.value(50);
  }
  json.end_array();
  write_limitation(json, config);
  write_topics(json, config);
  write_rates(json, config);
  json.end_object();
  return std::move(json).text();
}

}  // namespace todoke::relay

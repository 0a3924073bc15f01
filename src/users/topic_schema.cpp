#include "users/topic_schema.hpp"

namespace todoke::users {
namespace {

constexpr std::int64_t kTopicMax = 1'024;
constexpr std::string_view kTopicPrefix = "kukuri:";
constexpr std::string_view kTopicRule =
    "must be a topic id: kukuri:<64 hex>, kukuri:global, kukuri:user:<64 hex> or one that the node has "
    "reserved";

}  // namespace

api::Schema topic_schema(std::string_view meaning) {
  auto schema = api::text_up_to(kTopicMax, meaning);
  schema.least = 1;
  return schema;
}

api::Schema services_schema(std::string_view meaning) {
  constexpr std::int64_t kServices = 3;
  return api::set_of(api::choice_of({"index", "moderation", "trust"}, "A service."), kServices, meaning);
}

Checked<std::string> topic_id_in(const Desk& desk, std::string_view text, std::string_view field) {
  const auto topic = nostr::TopicId::from(text, desk.settings()->node.reserved_topics);
  if (!topic) return bad_field(field, kTopicRule);
  return topic->text();
}

Checked<std::string> topic_id_of(const Desk& desk, std::string_view name, std::string_view field) {
  const auto settings = desk.settings();
  const auto& node = settings->node;
  if (const auto topic = nostr::TopicId::from(name, node.reserved_topics)) return topic->text();
  // Somebody means an id and has mistyped it.
  if (name.starts_with(kTopicPrefix)) return bad_field(field, "looks like a topic id and is none");
  const auto topic = nostr::topic_id_of_name(node.network_id, name, node.mapping);
  if (!topic) return bad_field(field, "is no name: " + topic.error().message);
  return topic->text();
}

}  // namespace todoke::users

#include "app/topic_ids.hpp"

#include <utility>

#include <fmt/format.h>

#include "relay/config.hpp"

namespace todoke::app {

using nostr::TopicId;
using nostr::TopicMapping;

std::vector<TopicMapping> topic_mappings(const Config& config) {
  const auto& mapping = config.get(relay::keys::kMapping);
  if (mapping == "v1") return {TopicMapping::v1};
  if (mapping == "v2") return {TopicMapping::v2};
  return {TopicMapping::v1, TopicMapping::v2};
}

TopicId topic_id(const Config& config, const std::string& text, TopicMapping mapping) {
  if (auto id = TopicId::from(text, config.get(relay::keys::kReserved))) return *id;
  if (text.starts_with("kukuri:")) {
    throw UserError(fmt::format(
        "{}: no topic id: kukuri:global, kukuri:<64 hex>, kukuri:user:<64 hex> or one of topics.reserved",
        text));
  }
  auto id = nostr::topic_id_of_name(config.get(relay::keys::kNetworkId), text, mapping);
  if (!id) throw UserError(fmt::format("{}: {}", text, id.error().message));
  return *id;
}

std::vector<TopicId> topic_ids(const Config& config, const std::string& text) {
  std::vector<TopicId> ids;
  for (const auto mapping : topic_mappings(config)) {
    auto id = topic_id(config, text, mapping);
    if (ids.empty() || ids.back() != id) ids.push_back(std::move(id));
  }
  return ids;
}

}  // namespace todoke::app

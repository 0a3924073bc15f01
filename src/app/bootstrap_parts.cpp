#include "app/bootstrap_parts.hpp"

#include <memory>
#include <utility>

#include "bootstrap/config.hpp"
#include "bootstrap/publisher.hpp"
#include "relay/config.hpp"

namespace todoke::app {

std::filesystem::path node_key_file(const Config& config, const std::filesystem::path& folder) {
  const auto& configured = config.get(bootstrap::keys::kKeyFile);
  return configured.empty() ? folder / "node.key" : std::filesystem::path(configured);
}

bootstrap::NodeFacts node_facts(const Config& config, const std::vector<std::string>& roles) {
  bootstrap::NodeFacts facts;
  facts.name = config.get(relay::keys::kName);
  facts.roles = config.get(bootstrap::keys::kRoles);
  if (facts.roles.empty()) facts.roles = roles;
  facts.relay_url = config.get(relay::keys::kPublicUrl);
  facts.api_url = config.get(bootstrap::keys::kApiUrl);
  facts.policy_url = config.get(relay::keys::kTermsOfService);
  facts.jurisdiction = config.get(bootstrap::keys::kJurisdiction);
  facts.contact = config.get(relay::keys::kContact);
  facts.lifetime = std::chrono::duration_cast<std::chrono::seconds>(config.get(bootstrap::keys::kLifetime));
  return facts;
}

void add_bootstrap(NodeParts& parts) {
  if (parts.config.get(bootstrap::keys::kEnabled) == "off") return;
  const auto publisher = std::make_shared<bootstrap::Publisher>(
      parts.executor, bootstrap::PublisherParts{node_key_file(parts.config, parts.folder),
                                                node_facts(parts.config, parts.roles), parts.events,
                                                parts.database, parts.listener, parts.clock, parts.metrics});
  parts.add_service(publisher);
  parts.on_change([publisher, roles = parts.roles](const Config& config) {
    publisher->set_facts(node_facts(config, roles));
  });
}

}  // namespace todoke::app

// What the node says of itself (src/bootstrap), as the configuration and the roles of the process have it.
#pragma once

#include <filesystem>

#include "app/roles.hpp"
#include "bootstrap/documents.hpp"

namespace todoke::app {

// `folder`: data_dir.
std::filesystem::path node_key_file(const Config& config, const std::filesystem::path& folder);

bootstrap::NodeFacts node_facts(const Config& config, const std::vector<std::string>& roles);

// Adds the service that publishes it through the relay of this process; nothing with bootstrap.enabled = off.
void add_bootstrap(NodeParts& parts);

}  // namespace todoke::app

#include "app/effective_config.hpp"

#include <utility>

#include <fmt/format.h>

#include "app/data_folder.hpp"
#include "app/service_configs.hpp"
#include "base/live_config.hpp"

namespace todoke::app {

std::vector<Config> node_configs(const Config& own, const std::vector<Instance>& nodes) {
  std::vector<Config> configs;
  for (const auto& node : nodes) {
    try {
      configs.push_back(config_of_next_start(node, own));
    } catch (const UserError& error) {
      note(fmt::format("todoke: without the settings of the node with pid {}: {}", node.pid, error.what()));
    }
  }
  if (configs.empty()) configs.push_back(own);
  return configs;
}

Config node_config(const Config& own, const Arguments& arguments) {
  auto config = node_configs(own, running_instances(data_folder(own))).front();
  for (const auto& [key, value] : arguments.keys) config.set_flag(key, value);
  return config;
}

Task<Config> with_database_layer(pg::Connection& connection, Config base) {
  LiveConfig live(std::move(base));
  live.set_rows(co_await read_service_configs(connection, answer_deadline()));
  for (const auto& problem : live.problems()) note("todoke: refused: " + problem);
  co_return live.config();
}

}  // namespace todoke::app

#include "app/effective_config.hpp"

#include <utility>

#include <fmt/format.h>

#include "admin/service_configs.hpp"
#include "app/connection_in_use.hpp"
#include "app/data_folder.hpp"
#include "app/keys.hpp"
#include "base/live_config.hpp"
#include "embedded/folder.hpp"
#include "pg/config.hpp"

namespace todoke::app {
namespace {

std::string note_of(const Instance& node, const char* name) {
  const auto found = node.notes.find(name);
  return found == node.notes.end() ? std::string() : found->second;
}

bool is_embedded(const Instance& node) {
  return note_of(node, kDatabaseNote) == kEmbedded;
}

std::string place_of(const Instance& node, const std::filesystem::path& folder) {
  if (!is_embedded(node)) return note_of(node, kDatabaseAtNote);
  return database_place(embedded::url_of(embedded::layout_of(folder), embedded::kNodeRole));
}

[[noreturn]] void refuse_other_database(const Instance& node, const Config& own,
                                        const std::filesystem::path& folder) {
  const auto& url = own.setting(pg::kDatabaseUrl.spec.name);
  throw UserError(
      fmt::format("{} names the database {}, but the node with pid {} on {} works with {}: leave it out to "
                  "work beside that "
                  "node, or name another data folder with --data_dir",
                  url.source, database_place(std::get<std::string>(url.value)), node.pid, folder.string(),
                  is_embedded(node) ? std::string("its embedded Postgres") : place_of(node, folder)));
}

const Instance& chosen_node(const std::vector<Instance>& nodes, const Config& own,
                            const std::filesystem::path& folder) {
  const auto& url = own.get(pg::kDatabaseUrl);
  if (!url.empty()) {
    const auto place = database_place(url);
    for (const auto& node : nodes) {
      if (place_of(node, folder) == place) return node;
    }
    refuse_other_database(nodes.front(), own, folder);
  }
  for (const auto& node : nodes) {
    if (is_embedded(node)) return node;
  }
  for (const auto& node : nodes) {
    if (place_of(node, folder) == place_of(nodes.front(), folder)) continue;
    throw UserError(fmt::format(
        "the nodes with the pids {} and {} on {} work with different databases: say which with DATABASE_URL",
        nodes.front().pid, node.pid, folder.string()));
  }
  return nodes.front();
}

// The file may say by now what only the node's next start will have.
void use_database_of(const Instance& node, const Config& own, Config& config,
                     const std::filesystem::path& folder) {
  constexpr auto kUrl = pg::kDatabaseUrl.spec.name;
  constexpr auto kOwnerUrl = pg::kDatabaseOwnerUrl.spec.name;
  if (!own.is_default(kUrl)) {
    config.set_flag(kUrl, own.get(pg::kDatabaseUrl));
    config.set_flag(kOwnerUrl, own.get(pg::kDatabaseOwnerUrl));
  } else if (is_embedded(node)) {
    config.set_flag(kUrl, "");
    config.set_flag(kOwnerUrl, "");
  } else if (database_place(config.get(pg::kDatabaseUrl)) != place_of(node, folder)) {
    throw UserError(fmt::format(
        "the node with pid {} on {} works with the database {}, and has its address from its flags or its "
        "environment, which this command does not see: give it here, too, as DATABASE_URL",
        node.pid, folder.string(), place_of(node, folder)));
  }
}

}  // namespace

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

Config command_config(const Arguments& arguments, Tell tell) {
  auto own = load_config(arguments);
  const auto folder = data_folder(own);
  const auto nodes = running_instances(folder);
  if (nodes.empty()) return own;
  const auto& node = chosen_node(nodes, own, folder);
  auto config = node_configs(own, {node}).front();
  for (const auto& [key, value] : arguments.keys) config.set_flag(key, value);
  config.set_flag(keys::kDataDir.spec.name, folder.string());
  config.set_flag(keys::kLogLevel.spec.name, own.get(keys::kLogLevel));
  config.set_flag(keys::kLogFormat.spec.name, own.get(keys::kLogFormat));
  use_database_of(node, own, config, folder);
  if (tell == Tell::yes) {
    note(fmt::format("todoke: beside the node with pid {} ({})", node.pid, database_in_use(config).shown));
  }
  return config;
}

Task<Config> with_database_layer(pg::Connection& connection, Config base) {
  LiveConfig live(std::move(base));
  live.set_rows(co_await admin::read_service_configs(connection, answer_deadline()));
  for (const auto& problem : live.problems()) note("todoke: refused: " + problem);
  co_return live.config();
}

}  // namespace todoke::app

#include "app/root.hpp"

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/privileges.hpp"
#include "embedded/config.hpp"
#include "embedded/folder.hpp"
#include "embedded/user.hpp"

namespace todoke::app {

bool gives_up_root(const Config& config) {
  return geteuid() == 0 && config.get(embedded::kUser) != embedded::kStayRoot;
}

void begin_as_root() {
  refuse_new_privileges();
  // The user that the node becomes can't read root's home, and libpq gives up on TLS where it can't read its
  // home.
  ::unsetenv("HOME");
}

std::string give_up_root(const Config& config, const std::filesystem::path& folder, bool embedded_database) {
  if (geteuid() != 0) return {};
  if (!gives_up_root(config)) {
    log::warning("node", "stays root (server.user): a flaw in it would open the whole machine");
    return {};
  }
  const auto user = embedded::user_for(config.get(embedded::kUser), folder, embedded_database);
  if (!user) throw UserError(user.error().message);
  embedded::take_over(embedded::layout_of(folder), *user);
  try {
    become_user(user->name, user->identity->uid, user->identity->gid);
  } catch (const std::system_error& error) {
    throw UserError(
        fmt::format("the node can't become the user {} ({}): start it as that user, or let it stay root with "
                    "server.user = \"root\"",
                    user->name, error.what()));
  }
  log::info("node", "gave up root", {{"user", user->name}});
  return user->name;
}

void tell_root_only(const Config& config, const std::string& user) {
  std::vector<std::pair<std::string, std::string>> files{{"--config", config.file()}};
  for (const auto& [name, spec] : config.schema().keys()) {
    if (spec->type == KeyType::path)
      files.emplace_back(name, std::get<std::string>(config.setting(name).value));
  }
  for (const auto& [name, path] : files) {
    if (path.empty() || access(path.c_str(), R_OK) == 0 || errno != EACCES) continue;
    log::warning("node",
                 "only root can read this file, and the node has given up root: a restart reads it again",
                 {{"key", name}, {"path", path}, {"user", user}});
  }
}

}  // namespace todoke::app

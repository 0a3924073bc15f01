#include "app/data_folder.hpp"

#include <cstdlib>
#include <unistd.h>

#include "app/keys.hpp"

namespace todoke::app {

std::filesystem::path data_folder(const Config& config) {
  const auto& configured = config.get(keys::kDataDir);
  if (!configured.empty()) return std::filesystem::absolute(configured).lexically_normal();
  if (geteuid() == 0) return "/var/lib/todoke";
  if (const char* base = std::getenv("XDG_DATA_HOME"); base != nullptr && *base == '/') {
    return std::filesystem::path(base) / "todoke";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') {
    return std::filesystem::path(home) / ".local/share/todoke";
  }
  throw UserError("data_dir is not set and $HOME is not known; set TODOKE_DATA_DIR");
}

}  // namespace todoke::app

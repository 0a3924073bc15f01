#include "app/actor.hpp"

#include <array>
#include <pwd.h>
#include <unistd.h>

#include <fmt/format.h>

namespace todoke::app {

std::string actor() {
  std::array<char, 4'096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  getpwuid_r(getuid(), &entry, buffer.data(), buffer.size(), &found);
  return fmt::format("operator:{}", found != nullptr ? std::string(entry.pw_name) : std::to_string(getuid()));
}

}  // namespace todoke::app

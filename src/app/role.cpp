#include "app/role.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace todoke::app {
namespace {

std::map<std::string_view, Role>& registry() {
  static std::map<std::string_view, Role> instance;
  return instance;
}

}  // namespace

RoleRegistration::RoleRegistration(Role role) {
  const auto name = role.name;
  registry().emplace(name, std::move(role));
}

const std::map<std::string_view, Role>& roles() {
  return registry();
}

std::vector<std::string> all_roles() {
  std::vector<std::string> names;
  for (const auto& [name, role] : registry()) names.emplace_back(name);
  return names;
}

std::vector<std::string> parse_roles(std::string_view text) {
  std::vector<std::string> names;
  if (text == "none") return names;
  while (true) {
    const auto comma = text.find(',');
    const auto name = std::string(text.substr(0, comma));
    if (!registry().contains(name)) {
      throw UserError(fmt::format(
          "--roles: '{}' is no role of this build; there are: {}", name,
          registry().empty() ? std::string("none") : fmt::format("none, {}", fmt::join(all_roles(), ", "))));
    }
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    if (comma == std::string_view::npos) return names;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace todoke::app

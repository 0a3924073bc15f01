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

// index-v1 without its version.
std::string_view stem_of(std::string_view consumer) {
  const auto digits = consumer.find_last_not_of("0123456789");
  if (digits == std::string_view::npos || digits + 1 == consumer.size()) return consumer;
  const auto version = consumer.substr(0, digits + 1);
  return version.ends_with("-v") ? version.substr(0, version.size() - 2) : consumer;
}

}  // namespace

RoleRegistration::RoleRegistration(Role role) {
  const auto name = role.name;
  registry().emplace(name, std::move(role));
}

const std::map<std::string_view, Role>& roles() {
  return registry();
}

std::string_view role_of_consumer(std::string_view name) {
  for (const auto& [role, parts] : registry()) {
    if (std::find(parts.consumers.begin(), parts.consumers.end(), name) != parts.consumers.end()) return role;
  }
  return {};
}

bool is_own_consumer(std::string_view name) {
  return std::any_of(registry().begin(), registry().end(), [name](const auto& entry) {
    const auto& names = entry.second.consumers;
    return std::any_of(names.begin(), names.end(),
                       [name](std::string_view own) { return stem_of(own) == stem_of(name); });
  });
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

#include "bootstrap/config.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace todoke::bootstrap {
namespace {

constexpr std::size_t kRoleLengthMax = 64;

bool is_role(const std::string& text) {
  return !text.empty() && text.size() <= kRoleLengthMax && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

}  // namespace

std::span<const KeySpec* const> config_keys() {
  static constexpr const KeySpec* kAll[] = {&keys::kEnabled.spec,      &keys::kKeyFile.spec,
                                            &keys::kLifetime.spec,     &keys::kApiUrl.spec,
                                            &keys::kJurisdiction.spec, &keys::kRoles.spec};
  return kAll;
}

Expected<void> check_config(const Config& config) {
  for (const auto& role : config.get(keys::kRoles)) {
    if (!is_role(role)) {
      return refuse(fmt::format(
          "bootstrap.roles can't have '{}': a role is a word of lower-case letters, digits, - and _", role));
    }
  }
  return {};
}

}  // namespace todoke::bootstrap

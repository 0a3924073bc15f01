// Inside tests: what the checks of a room say of some settings.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/config.hpp"

namespace todoke::test {

using Flags = std::vector<std::pair<std::string, std::string>>;

// Why a start with these flags is refused; empty: it is not.
inline std::string refusal_of(std::span<const KeySpec* const> keys, Schema::Check check, const Flags& flags) {
  Schema schema;
  schema.add(keys, check);
  Config config(schema);
  for (const auto& [key, value] : flags) config.set_flag(key, value);
  const auto checked = config.check();
  return checked ? std::string() : checked.error().message;
}

}  // namespace todoke::test

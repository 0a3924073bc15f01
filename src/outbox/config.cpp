#include "outbox/config.hpp"

#include <fmt/format.h>

namespace todoke::outbox {

std::span<const KeySpec* const> config_keys() {
  static constexpr const KeySpec* kKeys[] = {
      &keys::kRetention.spec,
      &keys::kRetentionMax.spec,
      &keys::kBytesMax.spec,
      &keys::kPressureRows.spec,
  };
  return kKeys;
}

Expected<void> check_config(const Config& config) {
  if (config.get(keys::kRetention) > config.get(keys::kRetentionMax))
    return refuse(fmt::format("log.retention_max ({}) must be at least log.retention ({})",
                              config.shown(keys::kRetentionMax.spec.name),
                              config.shown(keys::kRetention.spec.name)));
  return {};
}

}  // namespace todoke::outbox

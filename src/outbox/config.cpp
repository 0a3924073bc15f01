#include "outbox/config.hpp"

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
    return refuse("log.retention_max must be at least log.retention");
  return {};
}

}  // namespace todoke::outbox

#include "outbox/config.hpp"

namespace todoke::outbox {

std::span<const KeySpec* const> config_keys() {
  static constexpr const KeySpec* kKeys[] = {
      &keys::kRetention.spec, &keys::kRetentionMax.spec, &keys::kBytesMax.spec,
      &keys::kPressure1.spec, &keys::kPressure2.spec,    &keys::kPressure3.spec,
  };
  return kKeys;
}

Expected<void> check_config(const Config& config) {
  if (config.get(keys::kRetention) > config.get(keys::kRetentionMax))
    return refuse("log.retention_max must be at least log.retention");
  if (config.get(keys::kPressure1) >= config.get(keys::kPressure2) ||
      config.get(keys::kPressure2) >= config.get(keys::kPressure3)) {
    return refuse("log.pressure_rows_1, _2 and _3 must grow");
  }
  return {};
}

}  // namespace todoke::outbox

#include "outbox/config.hpp"

namespace todoke::outbox {

std::span<const KeySpec* const> config_keys() {
  static constexpr const KeySpec* kKeys[] = {
      &keys::kRetention.spec, &keys::kRetentionMax.spec, &keys::kBytesMax.spec,
      &keys::kPressure1.spec, &keys::kPressure2.spec,    &keys::kPressure3.spec,
  };
  return kKeys;
}

}  // namespace todoke::outbox

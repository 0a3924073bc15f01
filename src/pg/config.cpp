#include "pg/config.hpp"

namespace todoke::pg {

std::span<const KeySpec* const> config_keys() {
  static constexpr const KeySpec* kKeys[] = {&kDatabaseUrl.spec, &kDatabaseOwnerUrl.spec,
                                             &kDatabasePoolMax.spec, &kMinFreeBytes.spec};
  return kKeys;
}

}  // namespace todoke::pg

#include "pg/config.hpp"

#include <array>

namespace todoke::pg {

std::span<const KeySpec* const> config_keys() {
  static constexpr std::array<const KeySpec*, 4> keys{
      &kDatabaseUrl.spec, &kDatabasePoolMax.spec, &kDatabaseConnectTimeout.spec, &kDatabaseQueryTimeout.spec};
  return keys;
}

}  // namespace todoke::pg

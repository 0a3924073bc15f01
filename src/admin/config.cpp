#include "admin/config.hpp"

namespace todoke::admin {

std::span<const KeySpec* const> keys::all() {
  static constexpr const KeySpec* kKeys[] = {&kSessionIdle.spec, &kSessionMax.spec};
  return kKeys;
}

}  // namespace todoke::admin

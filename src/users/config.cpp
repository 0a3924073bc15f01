#include "users/config.hpp"

namespace todoke::users {

std::span<const KeySpec* const> config_keys() {
  static constexpr const KeySpec* kKeys[] = {
      &keys::kSecretFile.spec,      &keys::kTokenLifetime.spec,      &keys::kAuthPerMinute.spec,
      &keys::kPublicPerMinute.spec, &keys::kProtectedPerMinute.spec, &keys::kPendingRequestsMax.spec,
      &keys::kAutoApprove.spec,     &keys::kTrendingWindow.spec,     &keys::kTrendingInterval.spec};
  return kKeys;
}

}  // namespace todoke::users

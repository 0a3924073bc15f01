#include "orders/brokers/http/config.hpp"

namespace todoke::orders {

std::span<const KeySpec* const> http_config_keys() {
  static constexpr const KeySpec* kKeys[] = {&keys::kHttpUrl.spec, &keys::kHttpFindUrl.spec,
                                             &keys::kHttpTokenFile.spec, &keys::kHttpCaFile.spec};
  return kKeys;
}

}  // namespace todoke::orders

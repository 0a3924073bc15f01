#include "orders/brokers/paper/config.hpp"

namespace todoke::orders {

std::span<const KeySpec* const> paper_config_keys() {
  static constexpr const KeySpec* kKeys[] = {
      &keys::kPaperLatency.spec, &keys::kPaperPartial.spec, &keys::kPaperReject.spec,
      &keys::kPaperTimeout.spec, &keys::kPaperLost.spec,    &keys::kPaperFirst.spec,
      &keys::kPaperOutage.spec,  &keys::kPaperSeed.spec,
  };
  return kKeys;
}

}  // namespace todoke::orders

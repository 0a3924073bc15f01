#include "orders/worker_config.hpp"

namespace todoke::orders {

std::span<const KeySpec* const> worker_config_keys() {
  static constexpr const KeySpec* kKeys[] = {
      &keys::kEnabled.spec,       &keys::kConcurrency.spec,  &keys::kBatch.spec,
      &keys::kPollInterval.spec,  &keys::kLease.spec,        &keys::kMaxAttempts.spec,
      &keys::kBackoff.spec,       &keys::kAdapter.spec,      &keys::kBrokerTimeout.spec,
      &keys::kPaperLatency.spec,  &keys::kPaperPartial.spec, &keys::kPaperReject.spec,
      &keys::kPaperTimeout.spec,  &keys::kPaperLost.spec,    &keys::kPaperFirst.spec,
      &keys::kPaperOutage.spec,   &keys::kPaperSeed.spec,    &keys::kSerializeBy.spec,
      &keys::kHistoryMonths.spec, &keys::kRisk.spec,         &keys::kMaxAgeIoc.spec,
      &keys::kMaxAgeFok.spec,     &keys::kMaxAgeGtc.spec,
  };
  return kKeys;
}

}  // namespace todoke::orders

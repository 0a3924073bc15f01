#include "orders/worker/config.hpp"

#include <fmt/format.h>

namespace todoke::orders {
namespace {

// A send needs so much beside the broker's time: a shorter lease could lapse during a send.
constexpr std::chrono::milliseconds kLeaseBeyondTimeout(1'000);

}  // namespace

std::span<const KeySpec* const> worker_config_keys() {
  static constexpr const KeySpec* kKeys[] = {
      &keys::kEnabled.spec,      &keys::kConcurrency.spec,   &keys::kBatch.spec,
      &keys::kPollInterval.spec, &keys::kLease.spec,         &keys::kMaxAttempts.spec,
      &keys::kBackoff.spec,      &keys::kAdapter.spec,       &keys::kBrokerTimeout.spec,
      &keys::kSerializeBy.spec,  &keys::kHistoryMonths.spec, &keys::kRisk.spec,
      &keys::kMaxAgeIoc.spec,    &keys::kMaxAgeFok.spec,     &keys::kMaxAgeGtc.spec,
  };
  return kKeys;
}

Expected<void> check_worker_config(const Config& config) {
  const auto lease = config.get(keys::kLease);
  const auto timeout = config.get(keys::kBrokerTimeout);
  if (!config.get(keys::kEnabled) || lease >= timeout + kLeaseBeyondTimeout) return {};
  return refuse(fmt::format(
      "outbox.lock_lease_sec is {} ms, and must be at least broker.timeout_ms ({} ms, which "
      "changes at a start only) and a second: an order could be taken over while it is being sent",
      lease.count(), timeout.count()));
}

}  // namespace todoke::orders

#include "relay/config.hpp"

namespace todoke::relay {

std::span<const KeySpec* const> config_keys() {
  static constexpr const KeySpec* kKeys[] = {
      &keys::kTopicPolicy.spec,    &keys::kAcceptTopics.spec,
      &keys::kNetworkId.spec,      &keys::kReserved.spec,
      &keys::kMapping.spec,        &keys::kTopicsMax.spec,
      &keys::kName.spec,           &keys::kDescription.spec,
      &keys::kContact.spec,        &keys::kPubkey.spec,
      &keys::kSoftware.spec,       &keys::kIcon.spec,
      &keys::kBanner.spec,         &keys::kPostingPolicy.spec,
      &keys::kPrivacyPolicy.spec,  &keys::kTermsOfService.spec,
      &keys::kPublicUrl.spec,      &keys::kMessageBytesMax.spec,
      &keys::kEventBytesMax.spec,  &keys::kTagsMax.spec,
      &keys::kFiltersMax.spec,     &keys::kSubscriptionsMax.spec,
      &keys::kLimitDefault.spec,   &keys::kLimitMax.spec,
      &keys::kFutureMax.spec,      &keys::kPastMax.spec,
      &keys::kDifficultyMin.spec,  &keys::kQueryTimeout.spec,
      &keys::kSearch.spec,         &keys::kCompression.spec,
      &keys::kPingInterval.spec,   &keys::kIdleTimeout.spec,
      &keys::kSendTimeout.spec,    &keys::kSendQueueBytesMax.spec,
      &keys::kCacheTopics.spec,    &keys::kCacheEvents.spec,
      &keys::kCacheBytes.spec,     &keys::kBatchEventsMax.spec,
      &keys::kQueueEventsMax.spec, &keys::kEventsPerMinute.spec,
      &keys::kReqsPerMinute.spec,  &keys::kConnectionsPerMinute.spec,
      &keys::kAuthMode.spec,       &keys::kEnforceAt.spec,
      &keys::kGrace.spec,          &keys::kAuthTimeout.spec,
  };
  return kKeys;
}

bool search_is_on(const Config& config) {
  const auto& search = config.get(keys::kSearch);
  return search == "on" || (search == "auto" && config.get(keys::kTopicPolicy) == "open");
}

}  // namespace todoke::relay

#include "relay/config.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "net/url.hpp"
#include "nostr/ids.hpp"
#include "relay/retention.hpp"

namespace todoke::relay {
namespace {

// Of a message and its frame around the event in them.
constexpr std::int64_t kEnvelopeBytes = 256;

Expected<void> check_identity(const Config& config) {
  const auto& pubkey = config.get(keys::kPubkey);
  if (!pubkey.empty() && !nostr::Pubkey::from_hex(pubkey)) {
    return refuse(fmt::format("relay.pubkey can't be '{}': it is 64 hex digits in lower case{}", pubkey,
                              pubkey.starts_with("npub1") ? ", not the npub form of them" : ""));
  }
  for (const auto& admin : config.get(keys::kAdmins)) {
    if (!nostr::Pubkey::from_hex(admin))
      return refuse(fmt::format("relay.admins can't have '{}': a key is 64 hex digits in lower case", admin));
  }
  auto url = config.get(keys::kPublicUrl);
  if (url.empty()) return {};
  const auto refused = [&](std::string_view why) {
    return refuse(fmt::format("relay.public_url can't be '{}': {}", config.get(keys::kPublicUrl), why));
  };
  if (!url.starts_with("ws://") && !url.starts_with("wss://")) {
    return refused("it is the URL that clients connect to, such as wss://relay.example.org");
  }
  url.replace(0, 2, "http");  // as the reader of URLs knows it
  if (const auto parsed = net::parse_url(url); !parsed) return refused(parsed.error().message);
  return {};
}

// They stand in the information document, which clients show and follow: javascript: has no place there.
Expected<void> check_links(const Config& config) {
  for (const auto* key : {&keys::kSoftware, &keys::kIcon, &keys::kBanner, &keys::kPostingPolicy,
                          &keys::kPrivacyPolicy, &keys::kTermsOfService}) {
    const auto& url = config.get(*key);
    if (url.empty()) continue;
    if (const auto parsed = net::parse_url(url); !parsed) {
      return refuse(fmt::format("{} can't be '{}': it is a URL with http:// or https:// ({})", key->spec.name,
                                url, parsed.error().message));
    }
  }
  return {};
}

Expected<void> check_reserved(const Config& config) {
  for (const auto& topic : config.get(keys::kReserved)) {
    const bool has_blanks = std::any_of(topic.begin(), topic.end(), [](char c) {
      return static_cast<unsigned char>(c) <= ' ' || c == '\x7f';
    });
    if (has_blanks)
      return refuse(fmt::format("topics.reserved can't have '{}': no blanks in a topic id", topic));
  }
  return {};
}

Expected<void> check_sizes(const Config& config) {
  if (config.get(keys::kEventBytesMax) + kEnvelopeBytes > config.get(keys::kSendQueueBytesMax)) {
    return refuse(fmt::format(
        "relay.send_queue_bytes_max must be at least relay.event_bytes_max and {} bytes: an event "
        "of that size could never be sent",
        kEnvelopeBytes));
  }
  if (config.get(keys::kLimitDefault) > config.get(keys::kLimitMax)) {
    return refuse(fmt::format("relay.limit_default ({}) must be at most relay.limit_max ({})",
                              config.get(keys::kLimitDefault), config.get(keys::kLimitMax)));
  }
  return {};
}

// Topics may have longer periods: `period_problems` (retention.hpp) looks at those.
Expected<void> check_retention(const Config& config) {
  const auto regular = config.get(keys::kRegularDays);
  std::vector<std::string> problems;
  for (const auto* key : {&keys::kTombstoneDays, &keys::kDedupeDays}) {
    if (config.get(*key) >= regular) continue;
    problems.push_back(fmt::format("{} ({}) must be at least retention.regular_days ({})", key->spec.name,
                                   config.get(*key), regular));
  }
  if (!problems.empty()) return refuse(period_text(problems));
  return {};
}

Expected<void> check_policy(const Config& config) {
  const auto& command = config.get(keys::kPolicyCommand);
  if (command.empty() || command.front().starts_with('/')) return {};
  return refuse(
      fmt::format("relay.policy_command must begin with an absolute path, not with \"{}\"", command.front()));
}

}  // namespace

std::span<const KeySpec* const> config_keys() {
  static constexpr const KeySpec* kKeys[] = {
      &keys::kTopicPolicy.spec,
      &keys::kAcceptTopics.spec,
      &keys::kNetworkId.spec,
      &keys::kReserved.spec,
      &keys::kMapping.spec,
      &keys::kTopicsMax.spec,
      &keys::kName.spec,
      &keys::kDescription.spec,
      &keys::kContact.spec,
      &keys::kPubkey.spec,
      &keys::kAdmins.spec,
      &keys::kSoftware.spec,
      &keys::kIcon.spec,
      &keys::kBanner.spec,
      &keys::kPostingPolicy.spec,
      &keys::kPrivacyPolicy.spec,
      &keys::kTermsOfService.spec,
      &keys::kPublicUrl.spec,
      &keys::kPolicyCommand.spec,
      &keys::kPolicyTimeout.spec,
      &keys::kPolicyOnFailure.spec,
      &keys::kMessageBytesMax.spec,
      &keys::kEventBytesMax.spec,
      &keys::kTagsMax.spec,
      &keys::kTagsBytesMax.spec,
      &keys::kFiltersMax.spec,
      &keys::kSubscriptionsMax.spec,
      &keys::kLimitDefault.spec,
      &keys::kLimitMax.spec,
      &keys::kFutureMax.spec,
      &keys::kPastMax.spec,
      &keys::kDifficultyMin.spec,
      &keys::kQueryTimeout.spec,
      &keys::kSearch.spec,
      &keys::kCompression.spec,
      &keys::kIdleTimeout.spec,
      &keys::kMessageTimeout.spec,
      &keys::kSendTimeout.spec,
      &keys::kSendQueueBytesMax.spec,
      &keys::kNegentropyEventsMax.spec,
      &keys::kCacheEvents.spec,
      &keys::kCacheBytes.spec,
      &keys::kEventsPerMinute.spec,
      &keys::kReqsPerMinute.spec,
      &keys::kConnectionsPerMinute.spec,
      &keys::kReadBudget.spec,
      &keys::kAddressFactor.spec,
      &keys::kAuthMode.spec,
      &keys::kChallenge.spec,
      &keys::kEnforceAt.spec,
      &keys::kGrace.spec,
      &keys::kAuthTimeout.spec,
      &keys::kRegularDays.spec,
      &keys::kSupersededDays.spec,
      &keys::kDeletionDays.spec,
      &keys::kTombstoneDays.spec,
      &keys::kDedupeDays.spec,
      &keys::kCapacityBytes.spec,
      &keys::kCapacityEvents.spec,
      &keys::kCapacityKeepDays.spec,
  };
  return kKeys;
}

Expected<void> check_config(const Config& config) {
  if (auto checked = check_identity(config); !checked) return checked;
  if (auto checked = check_links(config); !checked) return checked;
  if (auto checked = check_reserved(config); !checked) return checked;
  if (auto checked = check_retention(config); !checked) return checked;
  if (auto checked = check_policy(config); !checked) return checked;
  return check_sizes(config);
}

bool search_is_on(const Config& config) {
  const auto& search = config.get(keys::kSearch);
  return search == "on" || (search == "auto" && config.get(keys::kTopicPolicy) == "open");
}

}  // namespace todoke::relay

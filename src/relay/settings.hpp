// What the configuration says of events that come in, for the relay and for `todoke import`.
#pragma once

#include "base/config.hpp"
#include "nostr/rules.hpp"
#include "nostr/wire.hpp"
#include "relay/topic_book.hpp"

namespace todoke::relay {

nostr::RuleSettings rules_from(const Config& config);
nostr::MessageLimits message_limits_from(const Config& config);
TopicSettings topic_settings_from(const Config& config);

}  // namespace todoke::relay

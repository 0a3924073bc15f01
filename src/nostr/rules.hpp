// The rules of form that an event must obey before anybody looks at the database: pure, given the policy, the
// time and who sent it. Sizes are the parser's matter (event_parse.hpp), id and signature come after. Cheap:
// it walks the tags a few times and allocates nothing for plain events.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nostr/event.hpp"
#include "nostr/texts.hpp"

namespace todoke::nostr {

enum class TopicPolicy : std::uint8_t {
  topics,  // an event belongs to a topic, an addressable one has a `d`
  open,    // a plain Nostr relay
};

struct RuleSettings {
  TopicPolicy policy = TopicPolicy::topics;
  std::vector<std::string> reserved_topics;
  std::chrono::seconds future_max{900};  // clocks are a few minutes wrong, not more
  std::optional<std::chrono::seconds> past_max;
  unsigned difficulty_bits_min = 0;  // NIP-13
  std::string public_host;           // of this relay, for requests to vanish; empty: not known
};

// Where an event came from, as far as the form rules care.
struct Sender {
  std::span<const Pubkey> authenticated;  // by NIP-42, on this connection
  bool trusted = false;                   // the operator's import or the node itself: no login is asked for
  bool needs_no_topic = false;            // one of the node's own keys has signed it
};

// The first rule that the event breaks, or nothing.
//
// The kinds of this network (390xx, NIP-85) must have their tags and content schema in the policy `topics`.
// In `open` these numbers belong to other protocols as well, so only events that say `["k","kukuri"]` are
// held to it.
std::optional<Reason> broken_rule(const Event& event, const RuleSettings& settings, const Sender& sender,
                                  std::chrono::sys_seconds now);

}  // namespace todoke::nostr

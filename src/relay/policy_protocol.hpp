// What the relay and the operator's program say to each other (relay.policy_command): the protocol of
// strfry's plugins, so that theirs work here. A line of JSON asks, a line of JSON answers:
//
//   {"type":"new","event":{…},"receivedAt":1760000000,"sourceType":"IP4","sourceInfo":"192.0.2.1"}
//   {"id":"<id of the event>","action":"accept|reject|shadowReject","msg":"blocked: no cats"}
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "nostr/ids.hpp"
#include "relay/incoming.hpp"

namespace todoke::relay {

enum class PolicyAction : std::uint8_t {
  accept,
  reject,         // the client is told so
  shadow_reject,  // the client is told that it was taken
  failed,         // the program has not decided
};

struct PolicyVerdict {
  PolicyAction action = PolicyAction::failed;
  std::string text = {};  // of a reject: what the client is told; empty: the relay's own words
};

// Where an event came from, as the program is told.
struct PolicySource {
  std::string_view type;  // IP4, IP6, or Stream for what another node passed on
  std::string info;       // the address; of Stream the topic
  std::optional<nostr::Pubkey> authed = {};
};
PolicySource source_of_address(const std::string& address);

// With the line's end.
std::string policy_question(const nostr::Event& event, const PolicySource& source,
                            std::chrono::sys_seconds received_at);

struct PolicyAnswer {
  nostr::EventId id;
  PolicyVerdict verdict;
};
// What is longer is no reason for a client: the relay's own words take its place.
inline constexpr std::size_t kPolicyTextBytesMax = 1'024;
// Refused: why the line is no answer.
tl::expected<PolicyAnswer, std::string> read_policy_answer(std::string_view line);

}  // namespace todoke::relay

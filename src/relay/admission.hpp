// Everything that is checked of an event before the database: form, topics, id, signature. Pure but for the
// clock that is given. The order is by cost; the signature is the last.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <tl/expected.hpp>

#include "nostr/rules.hpp"
#include "outbox/pressure.hpp"
#include "relay/block_set.hpp"
#include "relay/incoming.hpp"
#include "relay/key_book.hpp"
#include "relay/known_ids.hpp"
#include "relay/topic_book.hpp"

namespace todoke::relay {

struct Admitted {
  Incoming incoming;
  bool ephemeral = false;  // to be delivered and not stored
};

// trusted: the operator says that they are right.
enum class Signatures : std::uint8_t { checked, trusted };

// `own` are the node's keys; what the node brings itself counts as signed by one of them. `known` answers
// duplicates before their signature is checked: they are refused with already_stored.
tl::expected<Admitted, nostr::Reason> admit(EventPtr event, Source source, const nostr::Sender& sender,
                                            const nostr::RuleSettings& rules, const BlockSet& blocks,
                                            const KeySet& own, const TopicSet& topics, const KnownIds& known,
                                            std::chrono::sys_seconds now,
                                            Signatures signatures = Signatures::checked);

// Why an event that was admitted is not taken now: what the node does under pressure.
std::optional<nostr::Reason> held_back(const Incoming& incoming, const TopicSet& topics,
                                       const outbox::Pressure& pressure);

}  // namespace todoke::relay

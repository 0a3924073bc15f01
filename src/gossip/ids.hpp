// Who and where in the gossip network: 32 bytes each.
#pragma once

#include "nostr/ids.hpp"
#include "nostr/topics.hpp"

namespace todoke::gossip {

// The public key of a node.
using NodeId = nostr::FixedBytes<struct NodeIdTag, 32>;
// A topic, as gossip knows it (nostr::gossip_topic_id).
using ChannelId = nostr::FixedBytes<struct ChannelIdTag, 32>;

}  // namespace todoke::gossip

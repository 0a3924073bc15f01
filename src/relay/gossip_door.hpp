// The way in for gossip: a message is checked as an EVENT of a client is, and goes to the same writer. What
// makes it another way: the topic of the channel must be among the event's topics, nobody waits for an OK,
// and rates are the bridge's matter (gossip/peer_limits.hpp). What a neighbour gives out of its store comes
// this way too, as backfill: old events are taken, where the topic allows it.
//
// And the way out: what the relay took, as the bridge is told of it.
#pragma once

#include "outbox/gossip_port.hpp"
#include "relay/admission.hpp"
#include "relay/incoming.hpp"
#include "relay/services.hpp"

namespace todoke::relay {

class GossipDoor final : public outbox::GossipIn {
 public:
  explicit GossipDoor(SessionServices& services);

  [[nodiscard]] std::vector<outbox::GossipTopic> topics() const override;
  outbox::GossipVerdict take(std::string_view json, const std::string& topic, outbox::GossipWay way,
                             const std::function<void()>& on_room) override;

 private:
  // Says at once that it was taken: whoever passes events on does not wait for the operator's program.
  outbox::GossipVerdict ask_policy(Admitted admitted, const std::function<void()>& on_room);
  outbox::GossipVerdict take(Admitted admitted, const std::function<void()>& on_room);
  outbox::GossipVerdict refuse(nostr::Reason reason, std::optional<nostr::EventId> id);

  SessionServices& services_;
  metrics::Counter& received_;  // todoke_ingest_received_total{source="gossip"}
  metrics::Counter& filled_;    // the same of source "backfill"
};

// Tells the bridge, where there is one, of an event that was stored or delivered. What came by import stays
// here: it is old. Of what was filled the bridge hears the topics alone.
void tell_gossip(outbox::GossipOut* bridge, const Incoming& incoming);

}  // namespace todoke::relay

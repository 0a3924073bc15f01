// The way in for other rooms of the process (outbox/event_port.hpp): what the User API was given and what the
// node has signed itself is checked as an EVENT of a client is, and goes to the same writer, so that
// subscribers, the log and gossip get it as they get any other. What makes it another way: nobody pays by the
// relay's rates, and the node needs no login. Its rows say so: source `api` or `node`.
//
// Bounded by the writer's queue: an event that finds no room is told to come again. What is read becomes
// events on the caller's loop.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "outbox/event_port.hpp"
#include "relay/incoming.hpp"
#include "relay/reader.hpp"
#include "relay/services.hpp"

namespace todoke::relay {

class EventDoor final : public outbox::EventPort {
 public:
  EventDoor(SessionServices& services, Reader& reader);

  Task<outbox::Published> publish(std::string event_json, outbox::From from,
                                  std::optional<nostr::Pubkey> proven, Deadline deadline) override;
  Task<std::vector<std::optional<std::string>>> read(std::vector<std::string> ids,
                                                     Deadline deadline) override;

 private:
  Task<std::optional<outbox::Published>> ask_policy(EventPtr event, std::optional<nostr::Pubkey> proven,
                                                    Deadline deadline);
  Task<outbox::Published> store(Incoming incoming, Deadline deadline);
  outbox::Published refuse(nostr::Reason reason);
  outbox::Published tell(const nostr::EventId& id, Outcome outcome);

  SessionServices& services_;
  Reader& reader_;
};

}  // namespace todoke::relay

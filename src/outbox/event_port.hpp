// What other rooms ask of the relay's store: to take an event that came over HTTP or that the node has signed
// itself, and to read events by their ids. A small interface, so that neither knows the other. The relay
// implements it (relay/event_door.hpp). A process without the relay has none: what it stored would reach no
// gossip.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/async.hpp"
#include "base/clock.hpp"
#include "nostr/ids.hpp"

namespace todoke::outbox {

// By which way an event comes: over the User API, or from the node itself.
enum class From : std::uint8_t { api, node };

struct Published {
  enum class Kind : std::uint8_t {
    stored,     // committed just now
    duplicate,  // it was there already
    refused,    // it breaks a rule, or the operator, its topic or a newer version keeps it out
    not_now,    // not now, or it is unknown whether it was stored: send it again
  };
  Kind kind = Kind::refused;
  std::string message;  // as after OK, such as "invalid: …"; empty for what is stored

  [[nodiscard]] bool is_accepted() const { return kind == Kind::stored || kind == Kind::duplicate; }
};

// Thread-safe: its tasks may be run on any executor.
class EventPort {
 public:
  virtual ~EventPort() = default;

  // Checked as an EVENT of a client is, down to the signature, and handed to the writer; the answer follows
  // the commit. `proven`: the key that its sender has proven, as by AUTH. Ephemeral events are refused. Past
  // the deadline the answer is not_now.
  virtual Task<Published> publish(std::string event_json, From from, std::optional<nostr::Pubkey> proven,
                                  Deadline deadline) = 0;

  // The JSON of those of the events that are in effect and public, in the order of `ids` (hex); none for the
  // others. Throws what the database throws.
  virtual Task<std::vector<std::optional<std::string>>> read(std::vector<std::string> ids,
                                                             Deadline deadline) = 0;
};

}  // namespace todoke::outbox

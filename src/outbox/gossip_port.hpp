// What the relay and the gossip bridge ask of each other: two small interfaces, so that neither knows the
// other.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nostr/event.hpp"

namespace todoke::outbox {

// An event that the relay took from somebody: stored and in effect, or ephemeral and delivered.
struct TakenEvent {
  std::shared_ptr<const nostr::Event> event;
  std::vector<std::string> topics;  // those it was taken for
  bool non_public = false;
  std::string came_by;  // the topic whose gossip brought it; empty: a client or the node itself
};

// The bridge, as the relay sees it. Thread-safe; nothing waits.
class GossipOut {
 public:
  virtual ~GossipOut() = default;
  // After the commit. Not for what came by backfill or import.
  virtual void took(TakenEvent taken) = 0;
  virtual void topics_changed() = 0;
};

struct GossipTopic {
  std::string id;
  bool low_priority = false;
};

struct GossipVerdict {
  enum class Kind {
    taken,    // it is new, as far as can be said before the commit
    known,    // it was there already
    held,     // refused for the node's own sake: its sender has done nothing wrong
    refused,  // it breaks a rule
  };
  Kind kind = Kind::taken;
  std::string_view reason;           // a label, when it was held or refused
  std::optional<nostr::EventId> id;  // when it is an event
  bool full = false;                 // taken, but the caller should stop until on_room is called
};

// The relay, as the bridge sees it. Thread-safe.
class GossipIn {
 public:
  virtual ~GossipIn() = default;
  // Those that the node takes (node_subscriptions).
  [[nodiscard]] virtual std::vector<GossipTopic> topics() const = 0;
  // One message of a topic's gossip: checked as an EVENT of a client is, down to the signature, and handed to
  // the writer. `on_room` is called once, from any thread, when the verdict says `full`.
  virtual GossipVerdict take(std::string_view json, const std::string& topic,
                             const std::function<void()>& on_room) = 0;
};

}  // namespace todoke::outbox

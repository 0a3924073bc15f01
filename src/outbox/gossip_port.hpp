// What the relay and the gossip bridge ask of each other: three small interfaces, so that neither knows the
// other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/async.hpp"
#include "nostr/event.hpp"
#include "nostr/negentropy.hpp"

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
  // After the commit of an event that came from a neighbour's store (GossipWay::fill), for these topics.
  virtual void filled(const std::vector<std::string>& topics) = 0;
  virtual void topics_changed() = 0;
};

struct GossipTopic {
  std::string id;
  bool low_priority = false;
  bool allow_backfill = true;
};

// How another node brought an event.
enum class GossipWay {
  message,  // by the gossip of a topic
  fill,     // from its store, because we asked for what is lacking here
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
  // One event of a topic: checked as an EVENT of a client is, down to the signature, and handed to the
  // writer. `on_room` is called once, from any thread, when the verdict says `full`.
  virtual GossipVerdict take(std::string_view json, const std::string& topic, GossipWay way,
                             const std::function<void()>& on_room) = 0;
};

// A part of a topic's events, by created_at; both bounds are inclusive.
struct FillSpan {
  std::string topic;
  std::optional<std::int64_t> since;
  std::optional<std::int64_t> until;
};

enum class FillView {
  all,        // whatever is in effect here
  everybody,  // what an anonymous reader may see
};

using NegSetPtr = std::shared_ptr<const nostr::NegSet>;

struct FillEvents {
  std::vector<TakenEvent> events;
  bool more = false;  // an answer's bytes have cut it
};

// The relay's store, as the bridge reads it. To be called on the bridge's executor, which goes on meanwhile.
// Throws what the database throws.
class FillSource {
 public:
  virtual ~FillSource() = default;
  // Null: more than `events_max`.
  virtual Task<NegSetPtr> ids(FillSpan span, FillView view, std::size_t events_max) = 0;
  // Those of these events of the topic that an anonymous reader may see.
  virtual Task<FillEvents> events(std::string topic, std::vector<nostr::EventId> ids) = 0;
  // What came from clients and from the node itself since then and is in effect, oldest first, the youngest
  // `events_max`.
  virtual Task<std::vector<TakenEvent>> sent_since(SystemTime since, std::size_t events_max) = 0;
};

}  // namespace todoke::outbox

// Another relay, as `todoke sync` and `todoke backfill` ask it: for the difference between its events and
// ours (NIP-77), and for events. What it refuses with `rate-limited:` is asked again after a pause, what it
// refuses with `auth-required:` once after logging in.
//
// Bounded: what one answer may hold, so that a hostile relay neither fills the memory nor keeps the caller
// waiting for ever.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/relay_client.hpp"
#include "nostr/filter.hpp"
#include "nostr/negentropy.hpp"

namespace todoke::app {

// The peer does not know NIP-77.
class NoNegentropy : public UserError {
 public:
  using UserError::UserError;
};

struct Difference {
  std::vector<nostr::EventId> have;  // that the peer lacks
  std::vector<nostr::EventId> need;  // that are lacking here; each once
};

struct StoredEvents {
  std::vector<std::string> events;  // as they were sent
  bool more = false;                // the peer says that it has more
  std::optional<std::int64_t>
      seq;  // of a todoke relay: where its log stood, or the last event if there is more
};

class RelayPeer {
 public:
  using Pause = std::function<Task<void>(std::chrono::nanoseconds)>;
  // `pause` waits before a question is repeated.
  explicit RelayPeer(RelayClient& relay, Pause pause = sleep_for) : relay_(relay), pause_(std::move(pause)) {}

  // Nothing: the peer says that these are too many events. `on_round` is called after each round. Throws
  // NoNegentropy, UserError for a refusal, NetError.
  Task<std::optional<Difference>> compare(const nostr::Filter& filter, const nostr::NegSet& set,
                                          std::function<void(const nostr::NegClient&)> on_round);
  // The answer to a REQ, up to its EOSE. Throws UserError for a refusal, NetError.
  Task<StoredEvents> stored(const nostr::Filter& filter);

  // Of all comparisons.
  [[nodiscard]] std::uint64_t rounds() const { return rounds_; }
  [[nodiscard]] RelayClient& client() { return relay_; }

 private:
  Task<nostr::RelayMessage> first_answer();
  Task<nostr::RelayMessage> next_message(std::chrono::milliseconds limit);
  // After a refusal: whether to ask again. Throws UserError where it is final.
  Task<void> before_asking_again(std::string why, int tries);

  RelayClient& relay_;
  const Pause pause_;
  std::uint64_t rounds_ = 0;
  bool knows_negentropy_ = false;
};

}  // namespace todoke::app

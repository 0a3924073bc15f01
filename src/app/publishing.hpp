// Sends events to a relay, many at once, until each has its answer. Events that the relay refuses with
// `rate-limited:` are sent again after a pause. The pause is a second, twice as long each time nothing was
// taken, 16 s at most; after ten such pauses in a row an event counts as refused. Refusals go to stderr.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "app/relay_client.hpp"
#include "nostr/event.hpp"

namespace todoke::app {

struct Outgoing {
  std::uint64_t line = 0;  // 0: not from a file
  std::string id;
  std::string json;
  int tries = 0;
};

Outgoing outgoing_of(std::uint64_t line, const nostr::Event& event);

struct Published {
  std::uint64_t taken = 0;
  std::uint64_t known = 0;  // the relay had it
  std::uint64_t refused = 0;
  std::uint64_t unreadable = 0;
};

class Publishing {
 public:
  // Relays answer in the time of a commit; these fill what a connection can hold meanwhile.
  static constexpr std::size_t kInFlightMax = 64;

  // Of refusals the first `told_max` are told.
  explicit Publishing(RelayClient& relay, std::uint64_t told_max = std::numeric_limits<std::uint64_t>::max())
      : relay_(relay), told_max_(told_max) {}

  // Waits while too many are under way. Throws UserError when the relay ends the connection.
  Task<void> publish(Outgoing event);
  // Until every event has its answer.
  Task<void> finish();
  void unreadable(std::uint64_t line, std::string_view why);

  [[nodiscard]] const Published& counts() const { return counts_; }

 private:
  static constexpr std::chrono::seconds kPauseFirst{1};

  // Takes an answer; where only refused events are left, waits and sends them again.
  Task<void> go_on();
  Task<void> take_answer();
  Task<void> send(Outgoing event);
  Task<void> judge(Outgoing event, nostr::RelayMessage answer);

  RelayClient& relay_;
  const std::uint64_t told_max_;
  std::map<std::string, Outgoing> in_flight_;  // by id
  std::vector<Outgoing> held_;                 // sent too fast for the relay
  Published counts_;
  std::chrono::seconds pause_ = kPauseFirst;
  int pauses_ = 0;
};

}  // namespace todoke::app

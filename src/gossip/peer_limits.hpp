// What a neighbour may cost. A message is charged before anybody looks into it, to whoever passed it on; one
// that broke a rule is charged to a second account, and who has overdrawn that is not listened to for a
// while. The library passes messages on unread, so a neighbour may be charged for what another node made.
//
// Bounded: `peers_max` neighbours that are not listened to. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>

#include "base/clock.hpp"
#include "base/hash_table.hpp"
#include "gossip/ids.hpp"
#include "net/rate_limit.hpp"

namespace todoke::gossip {

struct PeerRates {
  double events_per_second = 5'000;
  double refused_per_minute = 600;
  bool on = true;
};

class PeerLimits {
 public:
  static constexpr std::chrono::seconds kMutedFor{60};
  static constexpr std::size_t kPeersMax = 4'096;

  PeerLimits(PeerRates rates, const Clock& clock, metrics::Registry& registry);

  enum class Verdict { listen, too_fast, muted };
  Verdict charge(const NodeId& from);
  // A message of it broke a rule. True: from now on it is not listened to.
  bool refused(const NodeId& from);

  void set(PeerRates rates);

 private:
  bool is_muted(const NodeId& from);
  void make_room();

  const Clock& clock_;
  net::RateLimiter each_;
  net::RateLimiter all_;
  net::RateLimiter refused_;
  HashMap<NodeId, SteadyTime> muted_;  // until when
};

}  // namespace todoke::gossip

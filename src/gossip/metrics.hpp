// The metrics of the gossip bridge.
#pragma once

#include "base/metrics.hpp"

namespace todoke::gossip {

struct GossipMetrics {
  explicit GossipMetrics(metrics::Registry& registry);

  metrics::Registry& registry;
  metrics::Gauge& neighbours;                   // todoke_gossip_neighbours
  metrics::Gauge& topics;                       // todoke_gossip_topics
  metrics::Gauge& inbox;                        // todoke_gossip_inbox
  metrics::Gauge& out_waiting;                  // todoke_gossip_out_waiting
  metrics::Counter& received;                   // todoke_gossip_received_total
  metrics::Family<metrics::Counter>& verdicts;  // todoke_gossip_taken_total{outcome}
  metrics::Counter& taken;                      // … new
  metrics::Counter& known;                      // … known
  metrics::Family<metrics::Counter>& refused;   // todoke_gossip_refused_total{reason}
  metrics::Family<metrics::Counter>& dropped;   // todoke_gossip_dropped_total{why}
  metrics::Counter& muted;                      // todoke_gossip_muted_total
  metrics::Counter& lagged;                     // todoke_gossip_lagged_total
  metrics::Counter& sent;                       // todoke_gossip_sent_total
  metrics::Counter& rejoined;                   // todoke_gossip_rejoined_total
};

}  // namespace todoke::gossip

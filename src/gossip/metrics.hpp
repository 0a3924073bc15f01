// The metrics of the gossip bridge.
#pragma once

#include "base/metrics.hpp"

namespace todoke::gossip {

struct GossipMetrics {
  explicit GossipMetrics(metrics::Registry& all) : registry(all) {}

  metrics::Registry& registry;
  metrics::Gauge& neighbours =
      registry.gauge("todoke_gossip_neighbours", "Nodes that are a neighbour in at least one topic.");
  metrics::Gauge& topics = registry.gauge("todoke_gossip_topics", "Topics whose gossip is joined.");
  metrics::Gauge& inbox =
      registry.gauge("todoke_gossip_inbox", "Messages that came and wait to be looked at.");
  metrics::Gauge& out_waiting = registry.gauge("todoke_gossip_out_waiting", "Events that wait to be sent.");
  metrics::Counter& received = registry.counter("todoke_gossip_received_total", "Messages that came.");
  metrics::Family<metrics::Counter>& verdicts = registry.counters(
      "todoke_gossip_taken_total", "Messages that are events to be taken: new or known.", {"outcome"});
  metrics::Counter& taken = verdicts.with({"new"});
  metrics::Counter& known = verdicts.with({"known"});
  metrics::Family<metrics::Counter>& refused =
      registry.counters("todoke_gossip_refused_total", "Messages that were refused.", {"reason"});
  metrics::Family<metrics::Counter>& dropped = registry.counters(
      "todoke_gossip_dropped_total", "Messages that were dropped unread, or not sent.", {"why"});
  metrics::Counter& muted = registry.counter(
      "todoke_gossip_muted_total",
      "Times that a neighbour was not listened to for a while: it had broken too many rules.");
  metrics::Counter& lagged =
      registry.counter("todoke_gossip_lagged_total", "Times that the library has dropped messages.");
  metrics::Counter& sent = registry.counter("todoke_gossip_sent_total", "Messages that were sent.");
  metrics::Counter& rejoined =
      registry.counter("todoke_gossip_rejoined_total", "Times that a topic had to be joined again.");
};

}  // namespace todoke::gossip

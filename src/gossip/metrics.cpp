#include "gossip/metrics.hpp"

namespace todoke::gossip {

GossipMetrics::GossipMetrics(metrics::Registry& r)
    : registry(r),
      neighbours(r.gauge("todoke_gossip_neighbours", "Nodes that are a neighbour in at least one topic.")),
      topics(r.gauge("todoke_gossip_topics", "Topics whose gossip is joined.")),
      inbox(r.gauge("todoke_gossip_inbox", "Messages that came and wait to be looked at.")),
      out_waiting(r.gauge("todoke_gossip_out_waiting", "Events that wait to be sent.")),
      received(r.counter("todoke_gossip_received_total", "Messages that came.")),
      verdicts(r.counters("todoke_gossip_taken_total", "Messages that are events to be taken: new or known.",
                          {"outcome"})),
      taken(verdicts.with({"new"})),
      known(verdicts.with({"known"})),
      refused(r.counters("todoke_gossip_refused_total", "Messages that were refused.", {"reason"})),
      dropped(r.counters("todoke_gossip_dropped_total", "Messages that were dropped unread, or not sent.",
                         {"why"})),
      muted(
          r.counter("todoke_gossip_muted_total",
                    "Times that a neighbour was not listened to for a while: it had broken too many rules.")),
      lagged(r.counter("todoke_gossip_lagged_total", "Times that the library has dropped messages.")),
      sent(r.counter("todoke_gossip_sent_total", "Messages that were sent.")),
      rejoined(r.counter("todoke_gossip_rejoined_total", "Times that a topic had to be joined again.")) {}

}  // namespace todoke::gossip

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
  metrics::Gauge& fills =
      registry.gauge("todoke_gossip_fills", "Neighbours that are being asked for what is lacking here.");
  metrics::Family<metrics::Counter>& fills_ended = registry.counters(
      "todoke_gossip_fills_total", "Comparisons with a neighbour: done, or put_off.", {"outcome"});
  metrics::Counter& fills_done = fills_ended.with({"done"});
  metrics::Counter& fills_put_off = fills_ended.with({"put_off"});
  metrics::Counter& fill_rounds = registry.counter("todoke_gossip_fill_rounds_total",
                                                   "Messages of set reconciliation that went to neighbours.");
  metrics::Family<metrics::Counter>& fill_bytes =
      registry.counters("todoke_gossip_fill_bytes_total",
                        "Bytes of the questions to neighbours (out) and of their answers (in).", {"way"});
  metrics::Counter& fill_bytes_out = fill_bytes.with({"out"});
  metrics::Counter& fill_bytes_in = fill_bytes.with({"in"});
  metrics::Family<metrics::Counter>& filled = registry.counters(
      "todoke_gossip_filled_total", "Events that neighbours gave out of their stores: new, known or refused.",
      {"outcome"});
  metrics::Counter& filled_new = filled.with({"new"});
  metrics::Counter& filled_known = filled.with({"known"});
  metrics::Counter& filled_refused = filled.with({"refused"});
  metrics::Family<metrics::Counter>& questions =
      registry.counters("todoke_gossip_questions_total",
                        "Questions of other nodes: answered, refused, or dropped unread.", {"outcome"});
  metrics::Counter& questions_answered = questions.with({"answered"});
  metrics::Counter& questions_refused = questions.with({"refused"});
  metrics::Counter& questions_dropped = questions.with({"dropped"});
  metrics::Counter& sent_again =
      registry.counter("todoke_gossip_sent_again_total",
                       "Events of the last minute before a start that were given to the network once more.");
  metrics::Counter& rejoined =
      registry.counter("todoke_gossip_rejoined_total", "Times that a topic had to be joined again.");
};

}  // namespace todoke::gossip

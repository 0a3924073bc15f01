// The relay's metrics.
#pragma once

#include "base/metrics.hpp"
#include "nostr/texts.hpp"

namespace todoke::relay {

// Series of refusals for reasons that other rooms add.
inline constexpr std::size_t kReasonSeriesSpare = 8;

struct RelayMetrics {
  explicit RelayMetrics(metrics::Registry& all) : registry(all) {}

  metrics::Registry& registry;
  metrics::Gauge& subscriptions = registry.gauge("todoke_ws_subscriptions", "Open subscriptions.");
  metrics::Family<metrics::Counter>& received =
      registry.counters("todoke_ingest_received_total", "Events that came in, by where from.", {"source"});
  metrics::Counter& received_ws = received.with({"ws"});
  metrics::Family<metrics::Counter>& rejected =
      registry.counters("todoke_ingest_rejected_total", "Events that were refused, by why.", {"reason"},
                        nostr::all_reasons().size() + kReasonSeriesSpare);
  metrics::Histogram& commit_seconds = registry.histogram(
      "todoke_ingest_commit_seconds", "From sending a batch to its commit.", metrics::seconds_buckets());
  metrics::Histogram& batch_events =
      registry.histogram("todoke_ingest_batch_events", "Events in a batch.", metrics::size_buckets());
  metrics::Histogram& batch_rows =
      registry.histogram("todoke_ingest_batch_rows", "Rows that the events of a batch make.",
                         {16, 64, 256, 1024, 2048, 4096, 8192});
  metrics::Gauge& queued = registry.gauge("todoke_ingest_queued", "Events waiting for a batch.");
  metrics::Counter& paused = registry.counter(
      "todoke_ingest_paused_total", "Times that a connection was not read because the queue was full.");
  metrics::Counter& retries =
      registry.counter("todoke_ingest_retries_total", "Batches that had to be sent again.");
  metrics::Counter& dedupe_hits =
      registry.counter("todoke_dedupe_hits_total", "Events that were there already.");
  metrics::Histogram& live_lag_seconds =
      registry.histogram("todoke_live_lag_seconds", "From the commit of an event to its live delivery.",
                         metrics::seconds_buckets());
  metrics::Counter& live_delivered =
      registry.counter("todoke_live_delivered_total", "Events handed to a subscription as they came.");
  metrics::Counter& live_batches_let_go = registry.counter(
      "todoke_live_batches_let_go_total",
      "Batches that waited too long for live delivery and were fetched from the log instead.");
  metrics::Counter& live_unreadable = registry.counter(
      "todoke_live_unreadable_total", "Rows of the log that could not be read and were not delivered.");
  metrics::Histogram& lock_wait_seconds = registry.histogram(
      "todoke_log_lock_wait_seconds", "Waiting for the lock of the log.", metrics::seconds_buckets());
  metrics::Histogram& query_seconds = registry.histogram(
      "todoke_query_seconds", "From a REQ or COUNT to its last stored event, or to its failure.",
      metrics::seconds_buckets());
  metrics::Family<metrics::Counter>& query_failed = registry.counters(
      "todoke_query_failed_total", "REQs and COUNTs that could not be answered.", {"reason"});
  metrics::Counter& queries_from_memory =
      registry.counter("todoke_query_memory_total", "REQs that were answered from memory.");
  metrics::Gauge& reads_under_way =
      registry.gauge("todoke_reads_under_way", "Stored reads of REQs that are under way.");
  metrics::Gauge& reads_waiting =
      registry.gauge("todoke_reads_waiting", "REQs whose stored events wait to be read.");
  metrics::Gauge& counts_under_way = registry.gauge("todoke_counts_under_way", "COUNTs that are under way.");
  metrics::Gauge& counts_waiting =
      registry.gauge("todoke_counts_waiting", "COUNTs that wait for their turn.");
  metrics::Counter& slowed = registry.counter(
      "todoke_ws_slowed_total",
      "Times that a connection was not read for a second: it goes on sending beyond its rate.");
  metrics::Counter& unused_closed = registry.counter(
      "todoke_ws_unused_closed_total", "Connections closed because they had asked for nothing.");
  metrics::Counter& reads_interrupted =
      registry.counter("todoke_reads_interrupted_total",
                       "Stored reads and COUNTs that were ended because nobody waited for them any more.");
  metrics::Gauge& page_bytes = registry.gauge("todoke_page_bytes", "Stored events on their way to clients.");
  metrics::Counter& pages_dropped =
      registry.counter("todoke_pages_dropped_total",
                       "Connections closed because too many stored events waited for slow clients.");
  metrics::Gauge& filter_bytes = registry.gauge(
      "todoke_filter_bytes", "Memory of the filters of open subscriptions and of COUNTs, estimated.");
  metrics::Family<metrics::Counter>& req_refused =
      registry.counters("todoke_req_refused_total",
                        "REQs and COUNTs that were refused before anything was read, by why.", {"reason"});
  metrics::Gauge& sets =
      registry.gauge("todoke_neg_sets", "Sets of ids (NIP-77) that are open or being read.");
  metrics::Gauge& set_bytes = registry.gauge("todoke_neg_set_bytes", "Memory of these sets.");
  metrics::Counter& set_messages =
      registry.counter("todoke_neg_messages_total", "Messages of NEG-OPEN and NEG-MSG that were answered.");
  metrics::Family<metrics::Counter>& sets_refused = registry.counters(
      "todoke_neg_refused_total", "Reconciliations that were refused or ended with NEG-ERR, by why.",
      {"reason"}, nostr::all_reasons().size() + kReasonSeriesSpare);
  metrics::Counter& expired =
      registry.counter("todoke_expired_total", "Events whose expiration was written to the log.");
  metrics::Counter& ephemeral_dropped =
      registry.counter("todoke_ephemeral_dropped_total",
                       "Ephemeral events that did not go to the other relays: too many were waiting.");
  metrics::Gauge& vanish_waiting = registry.gauge("todoke_vanish_requests_waiting",
                                                  "Requests to vanish whose events are not all erased yet.");
  metrics::Counter& vanish_erased =
      registry.counter("todoke_vanish_erased_total", "Events that were erased by requests to vanish.");
  metrics::Counter& blocks_erased =
      registry.counter("todoke_blocks_erased_total",
                       "Events that were erased because their author or a topic of them is blocked.");
  metrics::Counter& addresses_blocked =
      registry.counter("todoke_blocks_connections_refused_total",
                       "Connections that were refused or ended because their address is blocked.");
  metrics::Gauge& log_head =
      registry.gauge("todoke_log_head_seq", "The last row of the log that this relay has seen.");
};

}  // namespace todoke::relay

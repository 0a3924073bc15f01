#include "relay/metrics.hpp"

#include "nostr/texts.hpp"

namespace todoke::relay {
namespace {

// For reasons that other rooms add.
constexpr std::size_t kReasonSeriesSpare = 8;

}  // namespace

RelayMetrics::RelayMetrics(metrics::Registry& r)
    : registry(r),
      subscriptions(r.gauge("todoke_ws_subscriptions", "Open subscriptions.")),
      received(r.counters("todoke_ingest_received_total", "Events that came in, by where from.", {"source"})),
      received_ws(received.with({"ws"})),
      rejected(r.counters("todoke_ingest_rejected_total", "Events that were refused, by why.", {"reason"},
                          nostr::all_reasons().size() + kReasonSeriesSpare)),
      commit_seconds(r.histogram("todoke_ingest_commit_seconds", "From sending a batch to its commit.",
                                 metrics::seconds_buckets())),
      batch_events(r.histogram("todoke_ingest_batch_events", "Events in a batch.", metrics::size_buckets())),
      batch_rows(r.histogram("todoke_ingest_batch_rows", "Rows that the events of a batch make.",
                             {16, 64, 256, 1024, 2048, 4096, 8192})),
      queued(r.gauge("todoke_ingest_queued", "Events waiting for a batch.")),
      paused(r.counter("todoke_ingest_paused_total",
                       "Times that a connection was not read because the queue was full.")),
      retries(r.counter("todoke_ingest_retries_total", "Batches that had to be sent again.")),
      dedupe_hits(r.counter("todoke_dedupe_hits_total", "Events that were there already.")),
      live_lag_seconds(r.histogram("todoke_live_lag_seconds",
                                   "From the commit of an event to its live delivery.",
                                   metrics::seconds_buckets())),
      live_delivered(
          r.counter("todoke_live_delivered_total", "Events handed to a subscription as they came.")),
      live_batches_let_go(r.counter("todoke_live_batches_let_go_total",
                                    "Batches that waited too long for live delivery and were fetched from "
                                    "the log instead.")),
      live_unreadable(r.counter("todoke_live_unreadable_total",
                                "Rows of the log that could not be read and were not delivered.")),
      lock_wait_seconds(r.histogram("todoke_log_lock_wait_seconds", "Waiting for the lock of the log.",
                                    metrics::seconds_buckets())),
      query_seconds(r.histogram("todoke_query_seconds",
                                "From a REQ or COUNT to its last stored event, or to its failure.",
                                metrics::seconds_buckets())),
      query_failed(
          r.counters("todoke_query_failed_total", "REQs and COUNTs that could not be answered.", {"reason"})),
      queries_from_memory(r.counter("todoke_query_memory_total", "REQs that were answered from memory.")),
      reads_under_way(r.gauge("todoke_reads_under_way", "Stored reads of REQs that are under way.")),
      reads_waiting(r.gauge("todoke_reads_waiting", "REQs whose stored events wait to be read.")),
      counts_under_way(r.gauge("todoke_counts_under_way", "COUNTs that are under way.")),
      counts_waiting(r.gauge("todoke_counts_waiting", "COUNTs that wait for their turn.")),
      slowed(r.counter(
          "todoke_ws_slowed_total",
          "Times that a connection was not read for a second: it goes on sending beyond its rate.")),
      reads_interrupted(r.counter("todoke_reads_interrupted_total",
                                  "Stored reads and COUNTs that were ended because nobody waited for them "
                                  "any more.")),
      page_bytes(r.gauge("todoke_page_bytes", "Stored events on their way to clients.")),
      pages_dropped(r.counter("todoke_pages_dropped_total",
                              "Connections closed because too many stored events waited for slow clients.")),
      filter_bytes(r.gauge("todoke_filter_bytes",
                           "Memory of the filters of open subscriptions and of COUNTs, estimated.")),
      req_refused(r.counters("todoke_req_refused_total",
                             "REQs and COUNTs that were refused before anything was read, by why.",
                             {"reason"})),
      expired(r.counter("todoke_expired_total", "Events whose expiration was written to the log.")),
      ephemeral_dropped(
          r.counter("todoke_ephemeral_dropped_total",
                    "Ephemeral events that did not go to the other relays: too many were waiting.")),
      vanish_waiting(r.gauge("todoke_vanish_requests_waiting",
                             "Requests to vanish whose events are not all erased yet.")),
      vanish_erased(
          r.counter("todoke_vanish_erased_total", "Events that were erased by requests to vanish.")),
      log_head(r.gauge("todoke_log_head_seq", "The last row of the log that this relay has seen.")) {}

}  // namespace todoke::relay

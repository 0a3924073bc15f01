// The relay's metrics.
#pragma once

#include "base/metrics.hpp"

namespace todoke::relay {

struct RelayMetrics {
  explicit RelayMetrics(metrics::Registry& registry);

  metrics::Registry& registry;
  metrics::Gauge& subscriptions;                    // todoke_ws_subscriptions
  metrics::Family<metrics::Counter>& received;      // todoke_ingest_received_total{source}
  metrics::Counter& received_ws;                    // … of the WebSocket
  metrics::Family<metrics::Counter>& rejected;      // todoke_ingest_rejected_total{reason}
  metrics::Histogram& commit_seconds;               // todoke_ingest_commit_seconds
  metrics::Histogram& batch_events;                 // todoke_ingest_batch_events
  metrics::Histogram& batch_rows;                   // todoke_ingest_batch_rows
  metrics::Gauge& queued;                           // todoke_ingest_queued
  metrics::Counter& paused;                         // todoke_ingest_paused_total
  metrics::Counter& retries;                        // todoke_ingest_retries_total
  metrics::Counter& dedupe_hits;                    // todoke_dedupe_hits_total
  metrics::Histogram& live_lag_seconds;             // todoke_live_lag_seconds
  metrics::Counter& live_delivered;                 // todoke_live_delivered_total
  metrics::Counter& live_batches_let_go;            // todoke_live_batches_let_go_total
  metrics::Counter& live_unreadable;                // todoke_live_unreadable_total
  metrics::Histogram& lock_wait_seconds;            // todoke_log_lock_wait_seconds
  metrics::Histogram& query_seconds;                // todoke_query_seconds
  metrics::Family<metrics::Counter>& query_failed;  // todoke_query_failed_total{reason}
  metrics::Counter& queries_from_memory;            // todoke_query_memory_total
  metrics::Gauge& reads_under_way;                  // todoke_reads_under_way
  metrics::Gauge& reads_waiting;                    // todoke_reads_waiting
  metrics::Gauge& counts_under_way;                 // todoke_counts_under_way
  metrics::Gauge& counts_waiting;                   // todoke_counts_waiting
  metrics::Counter& slowed;                         // todoke_ws_slowed_total
  metrics::Counter& reads_interrupted;              // todoke_reads_interrupted_total
  metrics::Gauge& page_bytes;                       // todoke_page_bytes
  metrics::Counter& pages_dropped;                  // todoke_pages_dropped_total
  metrics::Gauge& filter_bytes;                     // todoke_filter_bytes
  metrics::Family<metrics::Counter>& req_refused;   // todoke_req_refused_total{reason}
  metrics::Counter& expired;                        // todoke_expired_total
  metrics::Counter& ephemeral_dropped;              // todoke_ephemeral_dropped_total
  metrics::Gauge& vanish_waiting;                   // todoke_vanish_requests_waiting
  metrics::Counter& vanish_erased;                  // todoke_vanish_erased_total
  metrics::Gauge& log_head;                         // todoke_log_head_seq
};

}  // namespace todoke::relay

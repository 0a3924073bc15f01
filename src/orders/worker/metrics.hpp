// The worker's metrics, under the names of the protocol. Every series is there from the start.
#pragma once

#include <string>
#include <vector>

#include "base/metrics.hpp"

namespace todoke::orders {

struct OrderMetrics {
  OrderMetrics(metrics::Registry& registry, int attempts_max, const std::string& adapter);

  metrics::Counter& claimed;
  metrics::Counter& succeeded;  // outbox_processed_total{outcome}
  metrics::Counter& failed;
  metrics::Counter& aborted;
  metrics::Counter& conflict;
  metrics::Counter& synced;
  std::vector<metrics::Counter*> retries;  // by attempt, from 1; the last one stands for all beyond
  metrics::Counter& lease_expired;
  metrics::Counter& fenced;
  metrics::Counter& aborted_in_doubt;
  metrics::Counter& archived;
  metrics::Counter& history_dropped;
  metrics::Histogram& claim_ms;  // outbox_latency_ms{phase}
  metrics::Histogram& send_ms;
  metrics::Histogram& commit_ms;
  metrics::Gauge& oldest_pending;
  metrics::Gauge& in_doubt;
  metrics::Gauge& halts;
  metrics::Gauge& breaker;
};

}  // namespace todoke::orders

#include "orders/worker/metrics.hpp"

#include <algorithm>

namespace todoke::orders {
namespace {

// Series of outbox_retry_total; higher attempts are counted in the last one.
constexpr int kAttemptsShown = 32;

metrics::Family<metrics::Counter>& processed(metrics::Registry& registry) {
  return registry.counters("outbox_processed_total", "Tries of orders that were settled, by outcome.",
                           {"outcome"});
}

metrics::Family<metrics::Histogram>& latency(metrics::Registry& registry) {
  constexpr const char* kName = "outbox_latency_ms";
  registry.permit_unit(kName);
  return registry.histograms(kName,
                             "Time of a claim (a batch), of a send (one order) and of a settling (a batch).",
                             {"phase"}, metrics::milliseconds_buckets());
}

std::vector<metrics::Counter*> retry_series(metrics::Registry& registry, int attempts_max) {
  auto& family = registry.counters("outbox_retry_total",
                                   "Orders that wait for another try, by failed tries so far.", {"attempt"});
  std::vector<metrics::Counter*> series;
  for (int attempt = 1; attempt <= std::clamp(attempts_max, 1, kAttemptsShown); ++attempt) {
    series.push_back(&family.with({std::to_string(attempt)}));
  }
  return series;
}

}  // namespace

OrderMetrics::OrderMetrics(metrics::Registry& registry, int attempts_max, const std::string& adapter)
    : claimed(registry.counter("outbox_claimed_total", "Orders that this worker has claimed.")),
      succeeded(processed(registry).with({"succeeded"})),
      failed(processed(registry).with({"failed"})),
      aborted(processed(registry).with({"aborted"})),
      conflict(processed(registry).with({"conflict"})),
      synced(processed(registry).with({"synced"})),
      retries(retry_series(registry, attempts_max)),
      lease_expired(registry.counter("outbox_lock_lease_expired_total",
                                     "Orders taken over from workers whose lease had lapsed.")),
      fenced(registry.counter(
          "outbox_fenced_total",
          "Tries of this worker whose order was somebody else's when they were to be settled.")),
      aborted_in_doubt(registry.counter("outbox_aborted_in_doubt_total",
                                        "Orders aborted although the broker may have them.")),
      archived(registry.counter("outbox_archived_total", "Finished orders moved to the archive.")),
      history_dropped(registry.counter("outbox_history_dropped_total",
                                       "Months of the journal or the archive that were dropped.")),
      claim_ms(latency(registry).with({"claim"})),
      send_ms(latency(registry).with({"send"})),
      commit_ms(latency(registry).with({"commit"})),
      oldest_pending(
          registry.gauge("outbox_oldest_pending_seconds", "Age of the oldest order that could be sent.")),
      in_doubt(registry.gauge("outbox_in_doubt", "Orders that the broker may have although nobody knows.")),
      halts(registry.gauge("outbox_halts", "Halts that are in force.")),
      breaker(
          registry.gauges("outbox_breaker_state", "0 closed, 1 ramping up, 2 probing, 3 open.", {"adapter"})
              .with({adapter})) {}

}  // namespace todoke::orders

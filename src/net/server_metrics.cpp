#include "net/server_metrics.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"

namespace todoke::net {

namespace {
constexpr std::array<std::string_view, 8> kMethodNames{"GET",   "HEAD",   "POST",    "PUT",
                                                       "PATCH", "DELETE", "OPTIONS", "other"};
// Two listeners with some 60 routes of one or two methods and three statuses each.
constexpr std::size_t kRequestSeriesMax = 1024;
constexpr std::size_t kSecondsSeriesMax = 256;
constexpr std::chrono::seconds kHandshakeComplaintInterval(60);

std::size_t method_index(std::string_view method) {
  const auto found = std::find(kMethodNames.begin(), kMethodNames.end(), method);
  return found == kMethodNames.end() ? kMethodNames.size() - 1
                                     : static_cast<std::size_t>(found - kMethodNames.begin());
}
}  // namespace

ServerMetrics::ServerMetrics(metrics::Registry& registry, std::string listener, const Router& router)
    : connections(
          registry.gauges("todoke_http_connections", "Open connections, WebSockets included.", {"listener"})
              .with({listener})),
      unfinished_bytes(registry
                           .gauges("todoke_http_unfinished_bytes",
                                   "Memory of bodies and WebSocket messages that have not arrived whole.",
                                   {"listener"})
                           .with({listener})),
      unfinished_dropped(
          registry
              .counters("todoke_http_unfinished_dropped_total",
                        "Connections ended because too much had not arrived whole, and most of it theirs.",
                        {"listener"})
              .with({listener})),
      listener_(std::move(listener)),
      requests_(registry.counters("todoke_http_requests_total", "Answered HTTP requests.",
                                  {"listener", "route", "method", "status"}, kRequestSeriesMax)),
      hosts_refused_(registry
                         .counters("todoke_http_hosts_refused_total",
                                   "Requests for a host that is not this node's (server.hosts).",
                                   {"listener"})
                         .with({listener_})),
      limited_(registry
                   .counters("todoke_http_requests_limited_total",
                             "Requests that got 429: their client has used up its rate.", {"listener"})
                   .with({listener_})),
      series_(router.size() + 1) {
  auto& refused = registry.counters("todoke_http_connections_refused_total",
                                    "Connections that were not served.", {"listener", "reason"});
  for (std::size_t i = 0; i < kRefusals.size(); ++i)
    refused_[i] = &refused.with({listener_, std::string(kRefusals[i])});
  auto& seconds = registry.histograms("todoke_http_request_seconds",
                                      "From the end of a request's header until its answer was written.",
                                      {"listener", "route"}, metrics::seconds_buckets(), kSecondsSeriesMax);
  for (const auto& route : router.routes()) series_[route->index].route = route->pattern;
  series_.back().route = "none";
  for (auto& series : series_) series.seconds = &seconds.with({listener_, series.route});
}

void ServerMetrics::count(const Route* route, std::string_view method, int status, double seconds) {
  auto& series = route == nullptr ? series_.back() : series_[route->index];
  const auto m = method_index(method);
  const auto status_class = static_cast<std::size_t>(std::clamp(status / 100, 1, 5));
  auto& slot = series.requests[m * kClasses + status_class - 1];
  auto* counter = slot.load(std::memory_order_acquire);
  if (counter == nullptr) {
    counter = &requests_.with(
        {listener_, series.route, std::string(kMethodNames[m]), fmt::format("{}xx", status_class)});
    slot.store(counter, std::memory_order_release);
  }
  counter->add();
  series.seconds->observe(seconds);
}

HandshakeFailures::HandshakeFailures(metrics::Registry& registry, std::string listener)
    : listener_(std::move(listener)),
      count_(registry
                 .counters("todoke_http_tls_handshakes_failed_total",
                           "Connections that ended before TLS was agreed on.", {"listener"})
                 .with({listener_})) {}

void HandshakeFailures::note(std::string_view reason) {
  count_.add();
  const auto now = std::chrono::steady_clock::now();
  std::uint64_t failures = 0;
  {
    const std::lock_guard lock(mutex_);
    ++untold_;
    if (told_at_ != SteadyTime{} && now - told_at_ < kHandshakeComplaintInterval) return;
    told_at_ = now;
    failures = std::exchange(untold_, 0);
  }
  log::warning("http", "TLS handshakes failed",
               {{"listener", listener_}, {"failures", failures}, {"last_reason", reason}});
}

}  // namespace todoke::net

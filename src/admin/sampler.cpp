#include "admin/sampler.hpp"

#include <algorithm>
#include <utility>

#include "admin/samples_sql.hpp"
#include "base/text.hpp"

namespace todoke::admin {
namespace {

constexpr std::chrono::seconds kWriteMax(10);

bool is_counter(std::string_view metric) {
  return metric.ends_with("_total");
}

}  // namespace

const std::vector<SampledSeries>& sampled_series() {
  static const std::vector<SampledSeries> kSeries{
      {"events_received", "todoke_ingest_received_total"},
      {"events_rejected", "todoke_ingest_rejected_total"},
      {"live_delivered", "todoke_live_delivered_total"},
      {"http_requests", "todoke_http_requests_total"},
      {"connections", "todoke_http_connections"},
      {"subscriptions", "todoke_ws_subscriptions"},
      {"log_backlog_rows", "todoke_outbox_backlog"},
      {"pressure", "todoke_pressure"},
      {"orders_processed", "outbox_processed_total"},
      {"orders_in_doubt", "outbox_in_doubt"},
      {"jobs_ended", "todoke_jobs_ended_total"},
      {"rate_limited", "todoke_rate_limited_total"},
      {"logins", "todoke_admin_logins_total"},
  };
  return kSeries;
}

std::map<std::string, double, std::less<>> sums_by_metric(std::string_view rendered) {
  std::map<std::string, double, std::less<>> sums;
  while (!rendered.empty()) {
    const auto line = cut_until(rendered, '\n');
    if (line.empty() || line.front() == '#') continue;
    const auto name = line.substr(0, line.find_first_of("{ "));
    const auto value = parse_number<double>(line.substr(line.rfind(' ') + 1));
    if (value) sums[std::string(name)] += *value;
  }
  return sums;
}

Sampler::Sampler(const Executor& executor, std::chrono::milliseconds every, pg::Pool& pool,
                 metrics::Registry& registry)
    : PeriodicService(executor,
                      {.name = "metric samples",
                       .failed = "a minute of the metrics was not kept",
                       .every = every,
                       .begins_at_once = true},
                      registry),
      pool_(pool),
      registry_(registry) {}

Task<void> Sampler::round(RoundCause /*cause*/) {
  const auto sums = sums_by_metric(registry_.render());
  std::vector<std::string> names;
  std::vector<double> values;
  std::vector<std::string> levels;
  for (const auto& series : sampled_series()) {
    const auto found = sums.find(series.metric);
    if (found == sums.end()) continue;
    names.emplace_back(series.name);
    if (!is_counter(series.metric)) levels.emplace_back(series.name);
    values.push_back(is_counter(series.metric) ? found->second - last_[std::string(series.metric)]
                                               : found->second);
  }
  const auto deadline = Deadline::after(kWriteMax);
  pg::Batch batch;
  batch.add(sql::kAddSamples, pg::Params(names, values, levels));
  batch.add(sql::kDropSamples);
  const auto lease = co_await pool_.acquire(deadline);
  co_await lease->run(std::move(batch), deadline);
  for (const auto& series : sampled_series()) {
    if (const auto found = sums.find(series.metric); found != sums.end() && is_counter(series.metric))
      last_[std::string(series.metric)] = found->second;
  }
}

}  // namespace todoke::admin

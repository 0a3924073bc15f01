// Writes chosen metrics of this process into cn_admin.metric_samples, once a minute, for the plots of a
// console: 25 hours of them stay. A counter is written as what it grew by, a gauge as it is.
//
// Cost: one rendering of the metrics and two statements a minute.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/periodic.hpp"
#include "pg/pool.hpp"

namespace todoke::admin {

struct SampledSeries {
  std::string_view name;    // in the samples
  std::string_view metric;  // all series of this metric, added up
};
const std::vector<SampledSeries>& sampled_series();

// The sum of all series of a metric in the text form of the metrics; nothing where there is none.
std::map<std::string, double, std::less<>> sums_by_metric(std::string_view rendered);

class Sampler final : public PeriodicService {
 public:
  Sampler(const Executor& executor, std::chrono::milliseconds every, pg::Pool& pool,
          metrics::Registry& registry);

  [[nodiscard]] bool essential() const override { return false; }

 private:
  Task<void> round(RoundCause cause) override;

  pg::Pool& pool_;
  metrics::Registry& registry_;
  std::map<std::string, double, std::less<>> last_;  // of counters
};

}  // namespace todoke::admin

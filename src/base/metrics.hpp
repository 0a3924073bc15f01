// Prometheus metrics: counters, gauges and histograms in families with bounded label sets. Updating a series
// is an atomic operation; looking one up by labels takes a lock, so hot code keeps the reference. References
// stay valid as long as the registry lives. A family that has reached its limit of series gives the series
// whose labels are all "other", and `todoke_metrics_series_overflow_total` counts it.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace todoke::metrics {

class Counter {
 public:
  void add(std::uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

class Gauge {
 public:
  void set(double v) { value_.store(v, std::memory_order_relaxed); }
  void add(double v) { value_.fetch_add(v, std::memory_order_relaxed); }
  [[nodiscard]] double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

// Buckets are upper bounds, ascending; +Inf is implied.
using Buckets = std::vector<double>;

// From 100 us to 10 s, for what a person or a client waits for.
Buckets seconds_buckets();
Buckets milliseconds_buckets();
// 1, 2, 4 … 1024, for batch sizes.
Buckets size_buckets();

class Histogram {
 public:
  explicit Histogram(Buckets bounds);
  void observe(double v);
  [[nodiscard]] std::uint64_t count() const;
  [[nodiscard]] double sum() const { return sum_.load(std::memory_order_relaxed); }
  // Cumulative, one for each bound and the last for +Inf.
  [[nodiscard]] std::vector<std::uint64_t> cumulative() const;
  [[nodiscard]] const Buckets& bounds() const { return bounds_; }

 private:
  Buckets bounds_;
  std::vector<std::atomic<std::uint64_t>> counts_;
  std::atomic<double> sum_{0};
};

using LabelNames = std::vector<std::string>;
using LabelValues = std::vector<std::string>;

inline constexpr std::size_t kSeriesMaxDefault = 64;

// All series of one name. Made by the registry.
template <class Metric>
class Family {
 public:
  Family(LabelNames names, std::size_t series_max, std::function<std::unique_ptr<Metric>()> make,
         Counter* overflow)
      : names_(std::move(names)), series_max_(series_max), make_(std::move(make)), overflow_(overflow) {}

  // The values stand in the order of the names. A wrong number of them is a programming error and throws.
  Metric& with(const LabelValues& values);

  [[nodiscard]] const LabelNames& names() const { return names_; }
  // Calls `visit` for each series in the order of its labels, under the family's lock.
  void each(const std::function<void(const LabelValues&, const Metric&)>& visit) const;

 private:
  LabelNames names_;
  std::size_t series_max_;
  std::function<std::unique_ptr<Metric>()> make_;
  Counter* overflow_;
  mutable std::mutex mutex_;
  std::map<LabelValues, std::unique_ptr<Metric>> series_;
};

class Registry {
 public:
  Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // Asking for a name again gives the same metric; with another type or other labels it throws. So does what
  // `promtool check metrics` complains of: units but seconds and bytes, the type in the name, no help text.
  // A name that a contract gives, with its unit, is permitted first.
  void permit_unit(const std::string& name);
  Counter& counter(const std::string& name, const std::string& help);
  Gauge& gauge(const std::string& name, const std::string& help);
  Histogram& histogram(const std::string& name, const std::string& help, const Buckets& buckets);

  Family<Counter>& counters(const std::string& name, const std::string& help, const LabelNames& labels,
                            std::size_t series_max = kSeriesMaxDefault);
  Family<Gauge>& gauges(const std::string& name, const std::string& help, const LabelNames& labels,
                        std::size_t series_max = kSeriesMaxDefault);
  Family<Histogram>& histograms(const std::string& name, const std::string& help, const LabelNames& labels,
                                const Buckets& buckets, std::size_t series_max = kSeriesMaxDefault);

  // A gauge (or, with a name in _total, a counter) whose value is asked for when it is rendered. The function
  // must be quick and thread-safe, and live as long as the registry.
  void computed(const std::string& name, const std::string& help, std::function<double()> value);

  // Text exposition format, version 0.0.4.
  [[nodiscard]] std::string render() const;
  static constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

 private:
  struct Entry;
  Entry& entry(const std::string& name, const std::string& help, std::string_view type,
               const LabelNames& labels);

  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Entry>> entries_;
  std::set<std::string> permitted_units_;
  Counter* overflow_ = nullptr;
};

}  // namespace todoke::metrics

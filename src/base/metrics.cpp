#include "base/metrics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace todoke::metrics {

Buckets seconds_buckets() {
  return {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
}

Buckets milliseconds_buckets() {
  auto bounds = seconds_buckets();
  for (auto& bound : bounds) bound *= 1'000;
  return bounds;
}

Buckets size_buckets() {
  return {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
}

Histogram::Histogram(Buckets bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {
  if (!std::is_sorted(bounds_.begin(), bounds_.end()))
    throw std::invalid_argument("buckets are not ascending");
}

void Histogram::observe(double v) {
  const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), v) - bounds_.begin();
  counts_[static_cast<std::size_t>(at)].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(v, std::memory_order_relaxed);
}

std::vector<std::uint64_t> Histogram::cumulative() const {
  std::vector<std::uint64_t> result;
  std::uint64_t total = 0;
  for (const auto& count : counts_) result.push_back(total += count.load(std::memory_order_relaxed));
  return result;
}

std::uint64_t Histogram::count() const {
  return cumulative().back();
}

template <class Metric>
Metric& Family<Metric>::with(const LabelValues& values) {
  if (values.size() != names_.size()) throw std::invalid_argument("wrong number of label values");
  const std::lock_guard lock(mutex_);
  if (auto found = series_.find(values); found != series_.end()) return *found->second;
  if (!names_.empty() && series_.size() >= series_max_) {
    overflow_->add();
    auto& other = series_[LabelValues(names_.size(), "other")];
    if (!other) other = make_();
    return *other;
  }
  return *(series_[values] = make_());
}

template <class Metric>
void Family<Metric>::each(const std::function<void(const LabelValues&, const Metric&)>& visit) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [values, metric] : series_) visit(values, *metric);
}

template class Family<Counter>;
template class Family<Gauge>;
template class Family<Histogram>;

namespace {

bool name_is_well_formed(std::string_view name) {
  const auto ok = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') && std::all_of(name.begin(), name.end(), ok);
}

// Whether a part of the name, between underscores, is one of these.
template <std::size_t N>
bool has_part(std::string_view name, const std::array<std::string_view, N>& parts) {
  while (!name.empty()) {
    const auto end = std::min(name.find('_'), name.size());
    if (std::find(parts.begin(), parts.end(), name.substr(0, end)) != parts.end()) return true;
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return false;
}

bool has_wrong_unit(std::string_view name) {
  constexpr std::array<std::string_view, 27> kUnits{"s",
                                                    "ms",
                                                    "us",
                                                    "ns",
                                                    "sec",
                                                    "m",
                                                    "h",
                                                    "d",
                                                    "b",
                                                    "kb",
                                                    "mb",
                                                    "gb",
                                                    "tb",
                                                    "pb",
                                                    "minutes",
                                                    "hours",
                                                    "days",
                                                    "weeks",
                                                    "bits",
                                                    "milliseconds",
                                                    "microseconds",
                                                    "nanoseconds",
                                                    "kilobytes",
                                                    "megabytes",
                                                    "gigabytes",
                                                    "kibibytes",
                                                    "mebibytes"};
  return has_part(name, kUnits);
}

bool tells_its_type(std::string_view name) {
  constexpr std::array<std::string_view, 4> kTypes{"counter", "gauge", "histogram", "summary"};
  constexpr std::array<std::string_view, 3> kParts{"_count", "_sum", "_bucket"};
  return has_part(name, kTypes) || std::any_of(kParts.begin(), kParts.end(),
                                               [&](std::string_view part) { return name.ends_with(part); });
}

std::string escaped(std::string_view text, bool quotes) {
  std::string out;
  for (char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quotes) {
      out += "\\\"";
    } else {
      out.push_back(c);
    }
  }
  return out;
}

std::string number(double v) {
  if (std::isnan(v)) return "NaN";
  if (std::isinf(v)) return v > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", v);
}

std::string labels_text(const LabelNames& names, const LabelValues& values, std::string_view le = {}) {
  std::string out;
  const auto add = [&](std::string_view name, std::string_view value) {
    out += fmt::format("{}{}=\"{}\"", out.empty() ? "{" : ",", name, escaped(value, true));
  };
  for (std::size_t i = 0; i < names.size(); ++i) add(names[i], values[i]);
  if (!le.empty()) add("le", le);
  return out.empty() ? out : out + "}";
}

void render_histogram(std::string& out, const std::string& name, const LabelNames& names,
                      const LabelValues& values, const Histogram& h) {
  const auto counts = h.cumulative();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto le = i < h.bounds().size() ? number(h.bounds()[i]) : std::string("+Inf");
    out += fmt::format("{}_bucket{} {}\n", name, labels_text(names, values, le), counts[i]);
  }
  out += fmt::format("{}_sum{} {}\n", name, labels_text(names, values), number(h.sum()));
  out += fmt::format("{}_count{} {}\n", name, labels_text(names, values), counts.back());
}

}  // namespace

struct Registry::Entry {
  std::string help;
  std::string type;
  LabelNames labels;
  std::unique_ptr<Family<Counter>> counters;
  std::unique_ptr<Family<Gauge>> gauges;
  std::unique_ptr<Family<Histogram>> histograms;
  std::function<double()> computed;
};

Registry::Registry() {
  overflow_ =
      &counter("todoke_metrics_series_overflow_total",
               "Look-ups that found a metric at its limit of label sets and were counted as \"other\".");
}

void Registry::permit_unit(const std::string& name) {
  const std::lock_guard lock(mutex_);
  permitted_units_.insert(name);
}

Registry::Entry& Registry::entry(const std::string& name, const std::string& help, std::string_view type,
                                 const LabelNames& labels) {
  if (!name_is_well_formed(name)) throw std::invalid_argument("bad metric name: " + name);
  if ((type == "counter") != name.ends_with("_total")) {
    throw std::invalid_argument("a counter, and only a counter, ends in _total: " + name);
  }
  if (has_wrong_unit(name) && !permitted_units_.contains(name)) {
    throw std::invalid_argument("units are seconds, bytes and the like: " + name);
  }
  if (tells_its_type(name)) throw std::invalid_argument("a metric's name does not tell its type: " + name);
  if (help.empty()) throw std::invalid_argument("a metric needs a help text: " + name);
  auto& slot = entries_[name];
  if (!slot) {
    slot = std::make_shared<Entry>();
    slot->help = help;
    slot->type = type;
    slot->labels = labels;
  }
  if (slot->type != type || slot->labels != labels) {
    throw std::invalid_argument("metric exists with another type or other labels: " + name);
  }
  return *slot;
}

Family<Counter>& Registry::counters(const std::string& name, const std::string& help,
                                    const LabelNames& labels, std::size_t series_max) {
  const std::lock_guard lock(mutex_);
  auto& e = entry(name, help, "counter", labels);
  if (!e.counters) {
    e.counters = std::make_unique<Family<Counter>>(
        labels, series_max, [] { return std::make_unique<Counter>(); }, overflow_);
  }
  return *e.counters;
}

Family<Gauge>& Registry::gauges(const std::string& name, const std::string& help, const LabelNames& labels,
                                std::size_t series_max) {
  const std::lock_guard lock(mutex_);
  auto& e = entry(name, help, "gauge", labels);
  if (!e.gauges) {
    e.gauges = std::make_unique<Family<Gauge>>(
        labels, series_max, [] { return std::make_unique<Gauge>(); }, overflow_);
  }
  return *e.gauges;
}

Family<Histogram>& Registry::histograms(const std::string& name, const std::string& help,
                                        const LabelNames& labels, const Buckets& buckets,
                                        std::size_t series_max) {
  const std::lock_guard lock(mutex_);
  auto& e = entry(name, help, "histogram", labels);
  if (!e.histograms) {
    e.histograms = std::make_unique<Family<Histogram>>(
        labels, series_max, [buckets] { return std::make_unique<Histogram>(buckets); }, overflow_);
  }
  return *e.histograms;
}

Counter& Registry::counter(const std::string& name, const std::string& help) {
  return counters(name, help, {}).with({});
}

Gauge& Registry::gauge(const std::string& name, const std::string& help) {
  return gauges(name, help, {}).with({});
}

Histogram& Registry::histogram(const std::string& name, const std::string& help, const Buckets& buckets) {
  return histograms(name, help, {}, buckets).with({});
}

void Registry::computed(const std::string& name, const std::string& help, std::function<double()> value) {
  const std::lock_guard lock(mutex_);
  entry(name, help, name.ends_with("_total") ? "counter" : "gauge", {}).computed = std::move(value);
}

std::string Registry::render() const {
  std::map<std::string, std::shared_ptr<Entry>> entries;
  {
    const std::lock_guard lock(mutex_);
    entries = entries_;
  }
  std::string out;
  for (const auto& [metric_name, e] : entries) {
    const auto& name = metric_name;
    out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, escaped(e->help, false), name, e->type);
    if (e->computed) out += fmt::format("{} {}\n", name, number(e->computed()));
    if (e->counters) {
      e->counters->each([&](const LabelValues& values, const Counter& c) {
        out += fmt::format("{}{} {}\n", name, labels_text(e->labels, values), c.value());
      });
    }
    if (e->gauges) {
      e->gauges->each([&](const LabelValues& values, const Gauge& g) {
        out += fmt::format("{}{} {}\n", name, labels_text(e->labels, values), number(g.value()));
      });
    }
    if (e->histograms) {
      e->histograms->each([&](const LabelValues& values, const Histogram& h) {
        render_histogram(out, name, e->labels, values, h);
      });
    }
  }
  return out;
}

}  // namespace todoke::metrics

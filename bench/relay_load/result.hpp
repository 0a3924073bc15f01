// What a case found out about a relay.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/async.hpp"

namespace todoke::bench {

struct Figure {
  std::string key;    // for machines: the same name in every version
  std::string label;  // for people
  std::string unit;   // "ms" is the only one of which less is better
  double value = 0;
};

struct CaseResult {
  std::vector<Figure> figures;
  std::map<std::string, std::uint64_t> problems;  // what went wrong, and how often
  std::optional<std::string> failure;             // why there are no figures
  double client_busy = 0;  // the largest share of its time that the client's thread was computing

  // Texts that differ from each other (ids, times) must not fill the report.
  static constexpr std::size_t kProblemsMax = 10;
  void problem(std::string text) {
    if (problems.size() >= kProblemsMax && !problems.contains(text)) text = "others";
    ++problems[std::move(text)];
  }
};

// Time, and how much of it this thread was computing.
class Stopwatch {
 public:
  Stopwatch();
  [[nodiscard]] double seconds() const;
  // Ends the measurement: seconds so far; notes in `result` how busy the client was.
  double stop(CaseResult& result) const;

 private:
  SteadyTime began_;
  std::chrono::nanoseconds computing_;
};

// Milliseconds, many of them.
class Latencies {
 public:
  void add(SteadyTime::duration latency) {
    ms_.push_back(std::chrono::duration<double, std::milli>(latency).count());
  }
  [[nodiscard]] std::size_t size() const { return ms_.size(); }
  // The value that `share` of all do not exceed. At least one is needed.
  [[nodiscard]] double quantile(double share);

 private:
  std::vector<double> ms_;
};

}  // namespace todoke::bench

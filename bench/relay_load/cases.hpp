// The cases. Each connects anew, makes its events before its clock starts, and writes what it found into the
// result of its run. A case that cannot be run throws.
#pragma once

#include <string>
#include <vector>

#include "relay_load/events.hpp"
#include "relay_load/options.hpp"
#include "relay_load/result.hpp"

namespace todoke::bench {

struct Run {
  const Options& options;
  const std::string& url;
  EventMaker& events;
  CaseResult& result;

  void figure(std::string key, std::string label, std::string unit, double value) const {
    result.figures.push_back({std::move(key), std::move(label), std::move(unit), value});
  }
};

struct Case {
  std::string name;
  void (*run)(Run& run);
};

// In the order in which they are run.
const std::vector<Case>& all_cases();
std::vector<std::string> case_names();

// One at a time with pauses of 3 ms in the mean, a phase cannot use more than this.
inline constexpr std::size_t kIdlePerSecondMax = 400;

// Publishes a few hundred events that are not measured. Throws when the relay takes none of them.
void warm_up(Run& run);
// Publishes these events as fast as one connection does.
void publish(Run& run, const EventSet& events);
// Publishes `count` events as fast as one connection does, for a case that needs them there.
void publish_before(Run& run, std::size_t count);

void ingest_1(Run& run);
void ingest_10(Run& run);
void ok_idle(Run& run);
void ok_gaps(Run& run);
void ok_load(Run& run);
void live_idle(Run& run);
void live_load(Run& run);
void req(Run& run);
void hot(Run& run);
void fanout(Run& run);
void memory(Run& run);

}  // namespace todoke::bench

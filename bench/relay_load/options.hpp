// What the person at the terminal asks of the load generator.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace todoke::bench {

struct Options {
  std::vector<std::string> urls;  // none: a todoke of its own
  std::string topic = "kukuri:global";
  std::size_t events = 30'000;      // of each ingest case
  std::size_t event_bytes = 450;    // of an event's JSON, about
  std::size_t in_flight = 200;      // events without an OK, on each connection of an ingest case
  std::chrono::seconds seconds{5};  // of each latency phase and each REQ phase
  std::size_t rate = 1000;          // events/s of the phases under load
  std::size_t subscribers = 200;    // of the fan-out case, and connections of the memory case
  std::size_t stored = 100'000;     // events of the hot topic
  bool deflate = false;             // connections offer permessage-deflate
  std::string database = {};        // for a bare INSERT beside ok-gaps
  int pid = 0;                      // of the relay whose memory is measured
  std::string keep = {};            // where the numbers of this run are kept
  std::vector<std::string> only;    // names of cases, or of groups (`ok` is `ok-idle` and `ok-load`)
  bool help = false;

  [[nodiscard]] bool wants(std::string_view case_name) const;
};

// Throws UserError.
Options parse_options(const std::vector<std::string>& arguments, const std::vector<std::string>& case_names);
std::string help_text(const std::vector<std::string>& case_names);

}  // namespace todoke::bench

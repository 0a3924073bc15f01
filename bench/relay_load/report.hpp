// The results as a table for people and as one line of JSON for machines.
#pragma once

#include <string>
#include <vector>

#include "relay_load/options.hpp"
#include "relay_load/result.hpp"

namespace todoke::bench {

struct NamedResult {
  std::string case_name;
  CaseResult result;
};

struct RelayResult {
  std::string url;
  NamedResult warm_up;             // without figures; failed: none of the cases was run
  std::vector<NamedResult> cases;  // the same cases in the same order for every relay
};

// Figures side by side, the others' ratio to the first behind them; then what went wrong, case by case.
std::string table(const std::vector<RelayResult>& relays);
// Without a line end.
std::string json_line(const Options& options, const std::vector<RelayResult>& relays);

}  // namespace todoke::bench

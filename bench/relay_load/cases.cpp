#include "relay_load/cases.hpp"

namespace todoke::bench {

const std::vector<Case>& all_cases() {
  static const std::vector<Case> cases{
      {"ingest-1", ingest_1}, {"ingest-10", ingest_10}, {"ok-idle", ok_idle},     {"ok-gaps", ok_gaps},
      {"ok-load", ok_load},   {"live-idle", live_idle}, {"live-load", live_load}, {"req", req},
      {"hot", hot},           {"fanout", fanout},       {"memory", memory},
  };
  return cases;
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& one : all_cases()) names.push_back(one.name);
  return names;
}

}  // namespace todoke::bench

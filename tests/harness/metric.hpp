// Reads a series such as todoke_http_connections{listener="public"} out of what /metrics answers.
#pragma once

#include <optional>
#include <string>

#include "base/metrics.hpp"

namespace todoke::test {

// Nothing when there is no such series.
inline std::optional<double> metric_in(const std::string& exposition, const std::string& series) {
  const auto text = "\n" + exposition;
  const auto at = text.find("\n" + series + " ");
  if (at == std::string::npos) return std::nullopt;
  return std::stod(text.substr(at + series.size() + 2));
}

// 0 when there is no such series: a counter that nothing has counted yet may be missing.
inline double metric_of(const metrics::Registry& registry, const std::string& series) {
  return metric_in(registry.render(), series).value_or(0);
}

}  // namespace todoke::test

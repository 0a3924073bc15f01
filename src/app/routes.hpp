// The routes that every node has: health on both listeners, metrics on the internal one, a page that says
// what this is.
#pragma once

#include <string>

#include "base/metrics.hpp"
#include "base/service.hpp"
#include "net/router.hpp"

namespace todoke::app {

// `greets`: no role has a page of its own at `/`.
void add_public_routes(net::Router& router, const HealthBoard& board, bool greets);
void add_internal_routes(net::Router& router, const HealthBoard& board, const metrics::Registry& registry);

// What the internal /healthz answered, in a line: "up", or the state and what is not well, such as
// "degraded: order sending degraded (no worker runs)".
std::string health_summary(const std::string& body);

}  // namespace todoke::app

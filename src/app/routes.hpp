// The routes that every node has: health on both listeners, metrics on the internal one, a page that says
// what this is.
#pragma once

#include "base/metrics.hpp"
#include "base/service.hpp"
#include "net/router.hpp"

namespace todoke::app {

// `greets`: no role has a page of its own at `/`.
void add_public_routes(net::Router& router, const HealthBoard& board, bool greets);
void add_internal_routes(net::Router& router, const HealthBoard& board, const metrics::Registry& registry);

}  // namespace todoke::app

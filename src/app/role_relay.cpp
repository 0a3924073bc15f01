#include "app/role.hpp"
#include "app/version.hpp"
#include "relay/relay.hpp"

namespace todoke::app {
namespace {

void build(NodeParts& parts) {
  relay::RelayParts relay{parts.config,   parts.clock,    parts.executor,      parts.pool,
                          parts.listener, parts.database, parts.log,           parts.pressure,
                          parts.search,   parts.metrics,  parts.public_router, kVersion};
  for (auto& service : relay::build_relay(std::move(relay))) parts.add_service(std::move(service));
}

const RoleRegistration kRegistered({
    .name = "relay",
    .summary = "the Nostr relay: takes events, stores them, serves them",
    .build = build,
});

}  // namespace
}  // namespace todoke::app

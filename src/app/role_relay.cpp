#include "app/role.hpp"
#include "app/version.hpp"
#include "base/on_loop.hpp"
#include "relay/relay.hpp"

namespace todoke::app {
namespace {

void build_relay(NodeParts& parts) {
  relay::RelayParts relay{parts.config,        parts.clock,       parts.relay_executor, parts.read_executor,
                          parts.pools.control, parts.pools.reads, parts.listener,       parts.database,
                          parts.log,           parts.pressure,    parts.search,         parts.metrics,
                          parts.public_router, kVersion,          parts.on_change};
  for (auto& service : relay::build_relay(std::move(relay)))
    parts.add_service(std::make_shared<OnLoop>(parts.relay_executor, std::move(service)));
}

const RoleRegistration kRelayRegistered({
    .name = "relay",
    .summary = "the Nostr relay: takes events, stores them, serves them",
    .build = build_relay,
});

}  // namespace
}  // namespace todoke::app

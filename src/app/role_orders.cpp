#include "app/role.hpp"
#include "orders/intake/api.hpp"
#include "orders/worker/config.hpp"
#include "orders/worker/dispatcher.hpp"

namespace todoke::app {
namespace {

void build_orders(NodeParts& parts) {
  // The kill switch is read beside everything that orders do.
  const auto halts = std::make_shared<orders::Halts>(parts.executor, parts.pools.control, parts.listener,
                                                     parts.clock, parts.metrics);
  auto api = orders::build_api({parts.config, parts.clock, parts.executor, parts.pools.orders, parts.listener,
                                parts.database, parts.metrics, parts.public_router,
                                parts.config.get(orders::keys::kAdapter), halts});
  auto dispatcher = orders::build_dispatcher({parts.config, parts.clock, parts.executor, parts.pools.orders,
                                              parts.listener, parts.database, parts.health, parts.metrics,
                                              parts.tracer, halts, api.wake_waiters});
  for (auto& service : dispatcher.services) parts.add_service(std::move(service));
  for (auto& service : api.services) parts.add_service(std::move(service));
  parts.add_service_stopped_first(api.stops_first);
  parts.needs_to_stop(dispatcher.stops_within);
  parts.on_change(dispatcher.on_change);
  parts.on_change(api.on_change);
  parts.on_sighup(api.read_tokens);
}

const RoleRegistration kOrdersRegistered({
    .name = "orders",
    .summary = "the order dispatcher: takes orders and, with outbox.enabled, sends them",
    .build = build_orders,
});

}  // namespace
}  // namespace todoke::app

#include "app/role.hpp"
#include "orders/dispatcher.hpp"

namespace todoke::app {
namespace {

void build(NodeParts& parts) {
  auto dispatcher =
      orders::build_dispatcher({parts.config, parts.clock, parts.executor, parts.pool, parts.listener,
                                parts.database, parts.health, parts.metrics, parts.tracer});
  for (auto& service : dispatcher.services) parts.add_service(std::move(service));
  parts.on_reload(dispatcher.reload);
}

const RoleRegistration kRegistered({
    .name = "orders",
    .summary = "the order dispatcher: takes orders and, with outbox.enabled, sends them",
    .build = build,
});

}  // namespace
}  // namespace todoke::app

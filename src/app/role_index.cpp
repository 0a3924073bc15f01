#include "app/role.hpp"
#include "index/index_consumer.hpp"
#include "index/sweeper.hpp"
#include "outbox/runner.hpp"

namespace todoke::app {
namespace {

void build(NodeParts& parts) {
  parts.add_service(std::make_shared<outbox::Runner>(parts.executor, std::make_shared<index::IndexConsumer>(),
                                                     outbox::RunnerOptions(), parts.pool, parts.listener, parts.log,
                                                     parts.clock, parts.metrics));
  parts.add_service(std::make_shared<index::Sweeper>(parts.executor, index::SweeperOptions(), parts.pool,
                                                     parts.metrics));
}

const RoleRegistration kRegistered({
    .name = "index",
    .summary = "the search index: a consumer of the log",
    .build = build,
});

}  // namespace
}  // namespace todoke::app

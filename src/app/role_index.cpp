#include "app/role.hpp"
#include "index/index_consumer.hpp"
#include "index/sweeper.hpp"
#include "outbox/runner.hpp"

namespace todoke::app {
namespace {

// A search result may be a few seconds late; an OK may not.
constexpr std::chrono::seconds kDeferMax(10);

void build(NodeParts& parts) {
  outbox::RunnerOptions options;
  options.defer_max = kDeferMax;
  parts.add_service(std::make_shared<outbox::Runner>(parts.executor, std::make_shared<index::IndexConsumer>(),
                                                     options, parts.pools.control, parts.listener, parts.log,
                                                     parts.clock, parts.metrics));
  parts.add_service(std::make_shared<index::Sweeper>(parts.executor, index::SweeperOptions(),
                                                     parts.pools.control, parts.metrics));
}

const RoleRegistration kRegistered({
    .name = "index",
    .summary = "the search index: a consumer of the log",
    .build = build,
    .consumers = {index::kConsumerName},
});

}  // namespace
}  // namespace todoke::app

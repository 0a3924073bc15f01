#include "app/role.hpp"
#include "base/on_loop.hpp"
#include "index/index_consumer.hpp"
#include "index/sweeper.hpp"
#include "outbox/runner.hpp"

namespace todoke::app {
namespace {

// A search result may be a few seconds late; an OK may not.
constexpr std::chrono::seconds kDeferMax(10);

void build_index(NodeParts& parts) {
  outbox::RunnerOptions options;
  options.defer_max = kDeferMax;
  const auto& loop = parts.consumer_executor;
  const auto add = [&](std::shared_ptr<Service> service) {
    parts.add_service(std::make_shared<OnLoop>(loop, std::move(service)));
  };
  add(std::make_shared<outbox::Runner>(loop, std::make_shared<index::IndexConsumer>(), options,
                                       parts.pools.background, parts.listener, parts.log, parts.clock,
                                       parts.metrics));
  add(std::make_shared<index::Sweeper>(loop, index::SweeperOptions(), parts.pools.background, parts.metrics));
}

const RoleRegistration kIndexRegistered({
    .name = "index",
    .summary = "the search index: a consumer of the log",
    .build = build_index,
    .consumers = {index::kConsumerName},
});

}  // namespace
}  // namespace todoke::app

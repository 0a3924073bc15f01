#include "app/node_frame.hpp"

#include <algorithm>
#include <utility>

#include "app/node_options.hpp"
#include "app/roles.hpp"
#include "base/on_loop.hpp"
#include "index/search.hpp"
#include "jobs/history.hpp"
#include "jobs/runner.hpp"

namespace todoke::app {

NodeFrame::NodeFrame(const Config& config, const Clock& clock, NodeState& state, NodeLoops loops,
                     std::string url, bool own_server)
    : config_(config),
      clock_(clock),
      state_(state),
      loops_(std::move(loops)),
      url_(std::move(url)),
      pools(pool_options(config, url_), own_server, clock, state.registry),
      listener(std::make_shared<pg::Listener>(loops_.main, listener_options(url_), state.registry)),
      supervisor(loops_.main, clock, state.board, state.registry),
      live(config) {
  auto listens = public_server_config(config);
  listens.router = public_router;
  server = std::make_shared<net::HttpServer>(std::move(listens), loops_.door, loops_.connections,
                                             state.registry, &state.tracer);
}

void NodeFrame::add_storage_watch(StorageWatchOptions options) {
  options.free_bytes_min = free_bytes_min(config_);
  const auto watch = std::make_shared<StorageWatch>(loops_.main, std::move(options), clock_, state_.storage,
                                                    pools.control, state_.board, state_.registry);
  live.on_change([watch](const Config& changed) { watch->set_free_bytes_min(free_bytes_min(changed)); });
  supervisor.add(watch);
}

void NodeFrame::build_roles(const std::vector<std::string>& names, const std::filesystem::path& folder,
                            bool loopback) {
  NodeParts parts{config_,
                  clock_,
                  loops_.main,
                  loops_.relay,
                  loops_.consumers,
                  loops_.gossip,
                  loops_.reads,
                  pools,
                  *listener,
                  pool_options(config_, url_).connect,
                  state_.log,
                  state_.pressure,
                  state_.storage,
                  std::make_shared<index::IndexSearch>(pools.reads, clock_),
                  state_.board,
                  state_.registry,
                  state_.tracer,
                  *public_router,
                  *internal_router,
                  live,
                  jobs_,
                  [this](std::shared_ptr<Service> service) { supervisor.add(std::move(service)); },
                  [this](std::shared_ptr<Service> service) { supervisor.add(std::move(service), true); },
                  [this](std::chrono::milliseconds time) { stop_extra_ = std::max(stop_extra_, time); },
                  [this](LiveConfig::Reader reader) { live.on_change(std::move(reader)); },
                  [this](std::function<void()> reader) { file_readers_.push_back(std::move(reader)); },
                  folder,
                  loopback,
                  names};
  for (const auto* role : build_order(names)) role->build(parts);
  events_ = std::move(parts.events);
  if (!names.empty()) add_jobs();
}

// Also without a kind of its own: then it keeps the history short.
void NodeFrame::add_jobs() {
  const auto add = [this](std::shared_ptr<Service> service) {
    supervisor.add(std::make_shared<OnLoop>(loops_.consumers, std::move(service)));
  };
  add(std::make_shared<jobs::Runner>(loops_.consumers, jobs_, jobs::RunnerOptions(), pools.control, *listener,
                                     clock_, state_.registry));
  add(std::make_shared<jobs::History>(loops_.consumers, jobs::HistoryOptions(), pools.background,
                                      state_.registry));
}

void NodeFrame::read_files() const {
  for (const auto& reader : file_readers_) reader();
}

}  // namespace todoke::app

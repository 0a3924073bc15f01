#include "app/store_scope.hpp"

#include <utility>

#include <boost/asio/this_coro.hpp>

#include "app/connection_in_use.hpp"
#include "app/data_folder.hpp"
#include "app/effective_config.hpp"
#include "app/node_options.hpp"
#include "app/storage_watch.hpp"
#include "base/attempt.hpp"
#include "embedded/machine.hpp"
#include "relay/settings.hpp"

namespace todoke::app {
namespace {

// The set of topics, the watch on the disk, the reader, and one to spare.
constexpr std::size_t kStoreConnections = 4;
constexpr std::size_t kStoreReadEvents = 100;
constexpr std::size_t kStoreReadBytes = 128 * 1024 * 1024;

}  // namespace

Task<void> with_store_on(StoreParts parts, StoreOptions options,
                         std::function<Task<void>(StoreScope&)> work) {
  relay::Import importing({parts.config, parts.clock, parts.executor, parts.pool, parts.listener,
                           parts.database, parts.registry, parts.storage, options.checks_signatures,
                           options.source});
  relay::Reader reader(parts.pool, parts.clock, relay::rules_from(parts.config).policy,
                       {kStoreReadEvents, kStoreReadEvents, kStoreReadBytes}, nullptr);
  StoreScope scope{parts.config, parts.clock, parts.registry, parts.pool, parts.storage, importing, reader};
  auto done = co_await attempt(importing.start());
  if (done) {
    done = co_await attempt(work(scope));
    const auto committed = co_await attempt(importing.finish());
    if (done && !committed) done = committed;
  }
  if (!done) std::rethrow_exception(done.error());
}

Task<void> with_store(pg::Connection& connection, Config base, StoreOptions options,
                      std::function<Task<void>(StoreScope&)> work) {
  const auto config = co_await with_database_layer(connection, std::move(base));
  const auto database = database_in_use(config);
  const Executor executor = co_await asio::this_coro::executor;
  const SystemClock clock;
  metrics::Registry registry;
  auto pooled = pool_options(config, database.url);
  pooled.connections_max = kStoreConnections;
  const auto connect = pooled.connect;
  pg::Pool pool(std::move(pooled), clock, registry);
  pg::Listener listener(executor, listener_options(database.url), registry);
  pg::Storage storage;
  HealthBoard health;
  StorageWatchOptions watched{
      .folders = {}, .free_bytes_min = free_bytes_min(config), .free_bytes = embedded::free_disk_bytes};
  if (database.embedded) watched.folders = folders_to_watch(data_folder(config).string());
  StorageWatch watch(executor, std::move(watched), clock, storage, pool, health, registry);
  co_await watch.start();
  Signal watch_over(executor);
  spawn(executor, watch.run(), [&watch_over](const std::exception_ptr&) { watch_over.set(); });
  StoreParts parts{config, clock, executor, pool, listener, connect, registry, storage};
  const auto done = co_await attempt(with_store_on(std::move(parts), options, std::move(work)));
  watch.stop();
  co_await watch_over.wait();
  if (!done) std::rethrow_exception(done.error());
}

}  // namespace todoke::app

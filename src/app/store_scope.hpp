// What a command needs to store events, beside a running node or without one: connections, a watch on the
// disk, the way in (relay/import.hpp), and a reader. For as long as `work` takes.
#pragma once

#include <functional>

#include "base/config.hpp"
#include "base/metrics.hpp"
#include "pg/connection.hpp"
#include "pg/pool.hpp"
#include "pg/storage.hpp"
#include "relay/import.hpp"
#include "relay/reader.hpp"

namespace todoke::app {

struct StoreScope {
  const Config& config;  // with the database's layer
  const Clock& clock;
  metrics::Registry& registry;
  pg::Pool& pool;
  const pg::Storage& storage;
  relay::Import& importing;  // started, and finished after `work` at the latest
  relay::Reader& reader;     // no limits but 100 events of a filter
};

struct StoreOptions {
  relay::Source source = relay::Source::import;
  bool checks_signatures = true;
};

// What the work goes on.
struct StoreParts {
  const Config& config;  // with the database's layer
  const Clock& clock;
  Executor executor;
  pg::Pool& pool;
  pg::Listener& listener;
  pg::ConnectOptions database;
  metrics::Registry& registry;  // nobody else's: it gets the metrics of a writer
  pg::Storage& storage;         // somebody watches it
};

// On what is there already.
Task<void> with_store_on(StoreParts parts, StoreOptions options, std::function<Task<void>(StoreScope&)> work);

// `base` is a command's configuration without the database's layer.
Task<void> with_store(pg::Connection& connection, Config base, StoreOptions options,
                      std::function<Task<void>(StoreScope&)> work);

}  // namespace todoke::app

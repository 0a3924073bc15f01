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

// `base` is a command's configuration without the database's layer.
Task<void> with_store(pg::Connection& connection, Config base, StoreOptions options,
                      std::function<Task<void>(StoreScope&)> work);

}  // namespace todoke::app

#include "app/keys.hpp"

#include <unistd.h>

#include "admin/config.hpp"
#include "base/log.hpp"
#include "bootstrap/config.hpp"
#include "embedded/config.hpp"
#include "gossip/config.hpp"
#include "net/config.hpp"
#include "orders/brokers/fix/config.hpp"
#include "orders/brokers/http/config.hpp"
#include "orders/brokers/paper/config.hpp"
#include "orders/intake/config.hpp"
#include "orders/worker/config.hpp"
#include "outbox/config.hpp"
#include "pg/config.hpp"
#include "relay/config.hpp"
#include "users/config.hpp"

namespace todoke::app {

std::span<const KeySpec* const> keys::all() {
  static constexpr const KeySpec* kKeys[] = {&kDataDir.spec, &kLogLevel.spec, &kLogFormat.spec};
  return kKeys;
}

namespace {

// Keys of former versions that configurations may still set: they have no effect, the log and `todoke doctor`
// say so, and the start goes on. A key that is removed gets a line here.
constexpr RemovedKey kRemovedKeys[] = {
    {"database.connect_timeout", "it is 5s for everybody"},
    {"database.embedded_user", "use server.user"},
    {"database.embedded_start_timeout", "it is 60s for everybody"},
    {"database.query_timeout", "every call has a deadline of its own, such as relay.query_timeout"},
    {"log.pressure_rows_1", "use log.pressure_rows"},
    {"log.pressure_rows_2", "it is five times log.pressure_rows"},
    {"log.pressure_rows_3", "it is ten times log.pressure_rows"},
    {"relay.batch_events_max", "it is 256 for everybody"},
    {"relay.cache_topics", "it is 256 for everybody; relay.cache_bytes = 0 keeps none"},
    {"relay.ping_interval", "it is two fifths of relay.idle_timeout"},
    {"relay.queue_events_max", "it is 16384 for everybody"},
    {"server.body_bytes_max", "it is 1MiB for everybody"},
    {"server.idle_timeout", "it is 75s for everybody"},
    {"server.request_timeout", "it is 30s for everybody"},
};

Expected<void> check_shared_port(const Config& config) {
  if (!config.get(net::keys::kReusePort) || !config.get(pg::kDatabaseUrl).empty()) return {};
  return refuse(
      "server.reuse_port needs database.url: two nodes that share a port work on one database, and the "
      "embedded one "
      "belongs to one node");
}

}  // namespace

const Schema& schema() {
  static const Schema instance = [] {
    Schema s;
    s.add(keys::all(), check_shared_port);
    s.add(pg::config_keys());
    s.add(embedded::config_keys());
    s.add(net::config_keys(), net::check_config);
    s.add(outbox::config_keys(), outbox::check_config);
    s.add(relay::config_keys(), relay::check_config);
    s.add(bootstrap::config_keys(), bootstrap::check_config);
    s.add(gossip::config_keys(), gossip::check_config);
    s.add(admin::keys::all());
    s.add(users::config_keys());
    s.add(orders::api_config_keys());
    s.add(orders::worker_config_keys(), orders::check_worker_config);
    s.add(orders::paper_config_keys());
    s.add(orders::http_config_keys());
    s.add(orders::fix_config_keys());
    s.add_removed(kRemovedKeys);
    return s;
  }();
  return instance;
}

void configure_logs(const Config& config) {
  const auto& format = config.get(keys::kLogFormat);
  const bool human = format == "human" || (format == "auto" && isatty(STDERR_FILENO) == 1);
  log::configure(log::level_from(config.get(keys::kLogLevel)),
                 human ? log::Format::human : log::Format::json);
}

}  // namespace todoke::app

// What the configuration says, as the options of the parts that a node is wired from.
#pragma once

#include <cstdint>
#include <string>
#include <sys/resource.h>

#include "base/config.hpp"
#include "net/server.hpp"
#include "outbox/monitor.hpp"
#include "outbox/retention.hpp"
#include "pg/listener.hpp"
#include "pg/pool.hpp"

namespace todoke::app {

// The two listeners. The router is the caller's.
net::ServerConfig public_server_config(const Config& config);
net::ServerConfig internal_server_config(const Config& config);

// `url`: of the role that the node runs as.
pg::PoolOptions pool_options(const Config& config, std::string url);
pg::ListenerOptions listener_options(std::string url);

outbox::PressureThresholds pressure_thresholds(const Config& config);
// A relay that searches needs the consumer that makes the index.
outbox::MonitorOptions monitor_options(const Config& config, bool has_relay);
outbox::RetentionOptions retention_options(const Config& config);

// capacity.min_free_bytes
std::uint64_t free_bytes_min(const Config& config);

// How many open files a node needs: its connections, and the database's, pipes and certificates.
rlim_t open_files_wanted(const Config& config);

}  // namespace todoke::app

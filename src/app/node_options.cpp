#include "app/node_options.hpp"

#include <utility>

#include "app/exposure.hpp"
#include "app/roles.hpp"
#include "index/index_consumer.hpp"
#include "net/config.hpp"
#include "outbox/config.hpp"
#include "pg/config.hpp"
#include "relay/config.hpp"

namespace todoke::app {
namespace {

constexpr rlim_t kFilesBesideConnections = 256;
// TLS handshakes of an address, of which each takes half a millisecond of a processor: many times what
// clients need that keep their connections.
constexpr double kHandshakesPerMinute = 600;

}  // namespace

net::ServerConfig public_server_config(const Config& config) {
  net::ServerConfig server;
  server.name = "public";
  server.listen = config.get(net::keys::kListen);
  server.tls_cert = config.get(net::keys::kTlsCert);
  server.tls_key = config.get(net::keys::kTlsKey);
  server.trusted_proxies = config.get(net::keys::kTrustedProxies);
  server.hosts = public_hosts(config);
  server.reuse_port = config.get(net::keys::kReusePort);
  server.limits = net::limits_from(config);
  server.limits.prefixes = net::prefixes_from(config);
  if (config.get(net::keys::kRates) == "on") {
    server.limits.connections_per_address =
        static_cast<std::size_t>(config.get(net::keys::kConnectionsPerAddress));
    server.limits.handshakes_per_minute =
        kHandshakesPerMinute * static_cast<double>(config.get(relay::keys::kAddressFactor));
  }
  return server;
}

net::ServerConfig internal_server_config(const Config& config) {
  net::ServerConfig server;
  server.name = "internal";
  server.listen = config.get(net::keys::kInternalListen);
  server.tls_cert = config.get(net::keys::kInternalTlsCert);
  server.tls_key = config.get(net::keys::kInternalTlsKey);
  server.hosts = internal_hosts(config);
  server.reuse_port = config.get(net::keys::kReusePort);
  server.limits = net::limits_from(config);
  return server;
}

pg::PoolOptions pool_options(const Config& config, std::string url) {
  pg::PoolOptions options;
  options.connect.url = std::move(url);
  options.connections_max = static_cast<std::size_t>(config.get(pg::kDatabasePoolMax));
  return options;
}

pg::ListenerOptions listener_options(std::string url) {
  pg::ListenerOptions options;
  options.connect.url = std::move(url);
  return options;
}

outbox::PressureThresholds pressure_thresholds(const Config& config) {
  return outbox::PressureThresholds::from(config.get(outbox::keys::kPressureRows));
}

outbox::MonitorOptions monitor_options(const Config& config, bool has_relay) {
  outbox::MonitorOptions options;
  options.thresholds = pressure_thresholds(config);
  if (has_relay && relay::search_is_on(config)) {
    options.needed.push_back({std::string(index::kConsumerName),
                              std::string(role_of_consumer(index::kConsumerName)),
                              std::string(relay::keys::kSearch.spec.name)});
  }
  return options;
}

outbox::RetentionOptions retention_options(const Config& config) {
  outbox::RetentionOptions options;
  options.keep = config.get(outbox::keys::kRetention);
  options.keep_max = config.get(outbox::keys::kRetentionMax);
  options.bytes_max = config.get(outbox::keys::kBytesMax);
  return options;
}

std::uint64_t free_bytes_min(const Config& config) {
  return static_cast<std::uint64_t>(config.get(pg::kMinFreeBytes));
}

rlim_t open_files_wanted(const Config& config) {
  return static_cast<rlim_t>(config.get(net::keys::kConnectionsMax)) + kFilesBesideConnections;
}

}  // namespace todoke::app

#include "app/server_config.hpp"

#include "net/config.hpp"

namespace todoke::app {
namespace {

net::ServerLimits server_limits(const Config& config) {
  net::ServerLimits limits;
  limits.connections_max = static_cast<std::size_t>(config.get(net::keys::kConnectionsMax));
  limits.body_bytes_max = static_cast<std::size_t>(config.get(net::keys::kBodyBytesMax));
  limits.header_timeout = config.get(net::keys::kHeaderTimeout);
  limits.idle_timeout = config.get(net::keys::kIdleTimeout);
  limits.request_timeout = config.get(net::keys::kRequestTimeout);
  limits.drain_timeout = config.get(net::keys::kDrainTimeout);
  return limits;
}

}  // namespace

net::ServerConfig public_server_config(const Config& config) {
  net::ServerConfig server;
  server.name = "public";
  server.listen = config.get(net::keys::kListen);
  server.tls_cert = config.get(net::keys::kTlsCert);
  server.tls_key = config.get(net::keys::kTlsKey);
  server.trusted_proxies = config.get(net::keys::kTrustedProxies);
  server.limits = server_limits(config);
  return server;
}

net::ServerConfig internal_server_config(const Config& config) {
  net::ServerConfig server;
  server.name = "internal";
  server.listen = config.get(net::keys::kInternalListen);
  server.limits = server_limits(config);
  return server;
}

}  // namespace todoke::app

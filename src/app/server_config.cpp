#include "app/server_config.hpp"

#include "net/config.hpp"

namespace todoke::app {

net::ServerConfig public_server_config(const Config& config) {
  net::ServerConfig server;
  server.name = "public";
  server.listen = config.get(net::keys::kListen);
  server.tls_cert = config.get(net::keys::kTlsCert);
  server.tls_key = config.get(net::keys::kTlsKey);
  server.trusted_proxies = config.get(net::keys::kTrustedProxies);
  server.limits = net::limits_from(config);
  return server;
}

net::ServerConfig internal_server_config(const Config& config) {
  net::ServerConfig server;
  server.name = "internal";
  server.listen = config.get(net::keys::kInternalListen);
  server.limits = net::limits_from(config);
  return server;
}

}  // namespace todoke::app

#include "net/config.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace todoke::net {

std::span<const KeySpec* const> config_keys() {
  static constexpr const KeySpec* kKeys[] = {
      &keys::kListen.spec,
      &keys::kInternalListen.spec,
      &keys::kTlsCert.spec,
      &keys::kInternalTlsCert.spec,
      &keys::kInternalTlsKey.spec,
      &keys::kTlsKey.spec,
      &keys::kTrustedProxies.spec,
      &keys::kConnectionsMax.spec,
      &keys::kHeaderTimeout.spec,
      &keys::kDrainTimeout.spec,
      &keys::kIoThreads.spec,
      &keys::kRates.spec,
      &keys::kConnectionsPerAddress.spec,
      &keys::kIpv4Prefix.spec,
      &keys::kIpv6Prefix.spec,
      &keys::kTraceEndpoint.spec,
      &keys::kHosts.spec,
      &keys::kReusePort.spec,
  };
  return kKeys;
}

Expected<void> check_config(const Config& config) {
  const auto& listen = config.get(keys::kListen);
  if (listen == config.get(keys::kInternalListen) && !listen.ends_with(":0")) {
    return refuse(fmt::format("server.listen and server.internal_listen are both {}", listen));
  }
  return {};
}

NetworkPrefixes prefixes_from(const Config& config) {
  return {static_cast<unsigned>(config.get(keys::kIpv4Prefix)),
          static_cast<unsigned>(config.get(keys::kIpv6Prefix))};
}

ServerLimits limits_from(const Config& config) {
  ServerLimits limits;
  limits.connections_max = static_cast<std::size_t>(config.get(keys::kConnectionsMax));
  limits.header_timeout = config.get(keys::kHeaderTimeout);
  limits.drain_timeout = config.get(keys::kDrainTimeout);
  return limits;
}

std::size_t io_threads_from(const Config& config, unsigned cores) {
  const auto wanted = static_cast<std::size_t>(config.get(keys::kIoThreads));
  return wanted > 0 ? wanted : std::max<std::size_t>(1, cores / 2);
}

}  // namespace todoke::net

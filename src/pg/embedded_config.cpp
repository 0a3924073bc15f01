#include "pg/embedded_config.hpp"

#include <utility>

namespace todoke::pg {

std::span<const KeySpec* const> embedded_config_keys() {
  static constexpr const KeySpec* kKeys[] = {
      &kEmbeddedUser.spec, &kEmbeddedBinDir.spec, &kEmbeddedStartTimeout.spec,
      &kLogListen.spec,    &kLogAdvertise.spec,   &kLogTlsCert.spec,
      &kLogTlsKey.spec};
  return kKeys;
}

EmbeddedConfig embedded_config(const Config& config, std::string data_dir) {
  return {.data_dir = std::move(data_dir),
          .user = config.get(kEmbeddedUser),
          .bin_dir = config.get(kEmbeddedBinDir),
          .start_timeout = config.get(kEmbeddedStartTimeout),
          .listen = config.get(kLogListen),
          .tls_cert = config.get(kLogTlsCert),
          .tls_key = config.get(kLogTlsKey)};
}

}  // namespace todoke::pg

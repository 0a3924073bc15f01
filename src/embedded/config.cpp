#include "embedded/config.hpp"

#include <utility>

namespace todoke::embedded {

std::span<const KeySpec* const> config_keys() {
  static constexpr const KeySpec* kKeys[] = {&kUser.spec,         &kBinDir.spec,     &kLogListen.spec,
                                             &kLogAdvertise.spec, &kLogTlsCert.spec, &kLogTlsKey.spec};
  return kKeys;
}

Options options_from(const Config& config, std::string data_dir) {
  return {.data_dir = std::move(data_dir),
          .user = config.get(kUser),
          .bin_dir = config.get(kBinDir),
          .listen = config.get(kLogListen),
          .tls_cert = config.get(kLogTlsCert),
          .tls_key = config.get(kLogTlsKey)};
}

}  // namespace todoke::embedded

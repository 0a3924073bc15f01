// The configuration keys of the broker behind HTTP.
#pragma once

#include <span>
#include <string>

#include "base/config.hpp"

namespace todoke::orders::keys {

inline constexpr Key<std::string> kHttpUrl{{
    .name = "orders.http.url",
    .meaning = "Where the adapter `http` POSTs orders: http://… or https://….",
}};
inline constexpr Key<std::string> kHttpFindUrl{{
    .name = "orders.http.find_url",
    .meaning = "Where an order in doubt is looked up with GET; {key} stands for its key, such as "
               "https://broker.example/orders/{key}. Empty: the broker can't be asked.",
}};
inline constexpr Key<std::string> kHttpTokenFile{{
    .name = "orders.http.token_file",
    .meaning = "File with the token that is sent as Authorization: Bearer; read at each start. Empty: none.",
}};
inline constexpr Key<std::string> kHttpCaFile{{
    .name = "orders.http.ca_file",
    .meaning = "PEM file with the authorities that may vouch for the broker. Empty: the system's.",
}};

}  // namespace todoke::orders::keys

namespace todoke::orders {

inline std::span<const KeySpec* const> http_config_keys() {
  static constexpr const KeySpec* kKeys[] = {&keys::kHttpUrl.spec, &keys::kHttpFindUrl.spec,
                                             &keys::kHttpTokenFile.spec, &keys::kHttpCaFile.spec};
  return kKeys;
}

}  // namespace todoke::orders

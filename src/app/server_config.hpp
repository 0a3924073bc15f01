// The two listeners, from the configuration. The router is the caller's.
#pragma once

#include "base/config.hpp"
#include "net/server.hpp"

namespace todoke::app {

net::ServerConfig public_server_config(const Config& config);
net::ServerConfig internal_server_config(const Config& config);

}  // namespace todoke::app

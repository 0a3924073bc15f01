// Who can reach a node, and whether they need a token: the rules for a start, and the lines of `todoke
// doctor` about them.
#pragma once

#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/error.hpp"
#include "net/hosts.hpp"

namespace todoke::app {

// Refused: orders from everybody who can reach the node, unless orders.allow_anonymous says that this is
// meant.
Expected<void> check_exposure(const Config& config, const std::vector<std::string>& roles);

// `todoke up` is for trying things out: it refuses a broker that really trades.
Expected<void> check_broker_of_up(const Config& config);

// What is allowed and worth a warning: each a sentence.
std::vector<std::string> exposure_warnings(const Config& config, const std::vector<std::string>& roles);

// What is open and for whom, a line for each listener and for orders: (name, text).
std::vector<std::pair<std::string, std::string>> exposure_lines(const Config& config,
                                                                const std::vector<std::string>& roles);

// The host names that the listeners answer to (server.hosts, relay.public_url). An internal listener on
// another address than a loopback one answers to every name.
net::HostRule public_hosts(const Config& config);
net::HostRule internal_hosts(const Config& config);

}  // namespace todoke::app

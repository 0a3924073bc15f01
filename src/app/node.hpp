// A node: the services of one process, wired together.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/error.hpp"

namespace todoke::app {

struct NodeOptions {
  std::vector<std::string> roles;
  bool banner = false;    // print what runs and what to open on stdout
  bool loopback = false;  // listeners without a configured address stay on this machine
  // Reads the configuration anew, at SIGHUP.
  std::function<Config()> read_config = {};
};

// `config` with what `todoke up` turns on unless it is set: one process does everything, so it also sends the
// orders.
Config config_of_up(Config config);

// Runs until SIGTERM or SIGINT; returns the exit code. A second signal ends the process at once, and so does
// a stop that hangs, with an exit code other than 0. SIGHUP reads the configuration again for what can change
// while it runs, and the files that it names (certificates, tokens). Throws UserError for what has to be
// mended before it can start.
int run_node(Config config, const NodeOptions& options);

// What a start would refuse before it touches anything; `with_ports`: also a port that is in use.
Expected<void> check_node(const Config& config, const NodeOptions& options, bool with_ports);

}  // namespace todoke::app

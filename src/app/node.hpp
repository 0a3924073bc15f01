// A node: the services of one process, wired together.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/config.hpp"

namespace todoke::app {

struct NodeOptions {
  std::vector<std::string> roles;
  bool banner = false;  // print what runs and what to open on stdout
  // Reads the configuration anew, at SIGHUP.
  std::function<Config()> read_config = {};
};

// Runs until SIGTERM or SIGINT; returns the exit code. A second signal ends the process at once. SIGHUP reads
// the TLS certificate again, and the configuration for what can change while it runs. Throws UserError for
// what has to be mended before it can start.
int run_node(const Config& config, const NodeOptions& options);

}  // namespace todoke::app

// A node: the services of one process, wired together.
#pragma once

#include <string>
#include <vector>

#include "base/config.hpp"

namespace todoke::app {

struct NodeOptions {
  std::vector<std::string> roles;
  bool banner = false;  // print what runs and what to open on stdout
};

// Runs until SIGTERM or SIGINT; returns the exit code. A second signal ends the process at once. SIGHUP reads
// the TLS certificate again. Throws UserError for what has to be mended before it can start.
int run_node(const Config& config, const NodeOptions& options);

}  // namespace todoke::app

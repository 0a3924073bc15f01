// The configuration that a command works by: beside a running node that node's, with the database's layer over it; this
// shell's otherwise.
#pragma once

#include <vector>

#include "app/command.hpp"
#include "app/instance_file.hpp"
#include "base/config.hpp"
#include "pg/connection.hpp"

namespace todoke::app {

// The configurations of the nodes that run on this data folder; that of this shell where none runs. A node
// whose file can't be read any more is told and left out.
std::vector<Config> node_configs(const Config& own, const std::vector<Instance>& nodes);

// Without the database's layer: the configuration of the first node that runs on the data folder of `own`, or `own`; with the
// keys of the command line over it.
Config node_config(const Config& own, const Arguments& arguments);

// `base` with the values of the database over it; says on stderr what of them is refused.
Task<Config> with_database_layer(pg::Connection& connection, Config base);

}  // namespace todoke::app

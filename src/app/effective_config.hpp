// The configuration that a command works by: beside a running node that node's, with the database's layer
// over it; this shell's otherwise. A node is found by what it notes about itself in the data folder
// (instance_file.hpp).
#pragma once

#include <vector>

#include "app/command.hpp"
#include "app/instance_file.hpp"
#include "base/config.hpp"
#include "pg/connection.hpp"

namespace todoke::app {

// The configurations of the nodes that run on this data folder; that of this shell where none runs. Leaves
// out a node whose file can't be read any more, and says so.
std::vector<Config> node_configs(const Config& own, const std::vector<Instance>& nodes);

// Whether a command says on stderr which node it works beside.
enum class Tell { yes, no };

// Without the database's layer: the configuration of the node that runs on the data folder, its database
// among it, or that of this shell where none runs; with the keys of the command line over it. Several nodes
// on one folder: the one whose database this shell names, else the one with the embedded database. Throws
// UserError where this shell names another database than the node has, and where the node has its database's
// address from a place that can't be read here.
Config command_config(const Arguments& arguments, Tell tell = Tell::yes);

// `base` with the values of the database over it; says on stderr what of them is refused.
Task<Config> with_database_layer(pg::Connection& connection, Config base);

}  // namespace todoke::app

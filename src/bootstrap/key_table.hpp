// The node's public keys as the database knows them (cn_bootstrap.keys). Relays hear of every change.
#pragma once

#include "bootstrap/node_keys.hpp"
#include "pg/connection.hpp"

namespace todoke::bootstrap {

// Writes down the keys that a node signs with. `old`: those before the last rotation; null: there was none.
// Throws UserError where the database knows the node by keys that are neither: then the file belongs to
// another node, or got lost. Repeats itself without harm.
Task<void> register_keys(pg::Connection& connection, const NodeKeys& keys, const NodeKeys* old,
                         Deadline deadline);

// The same whatever the database knows the node by: what it knew is withdrawn.
Task<void> replace_keys(pg::Connection& connection, const NodeKeys& keys, Deadline deadline);

}  // namespace todoke::bootstrap

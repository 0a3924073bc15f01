// The key that a relay process has in the gossip network: a file of the data folder that only its user can
// read, made at the first start. Each process on a data folder has its own: gossip.key, gossip-2.key and so
// on.
#pragma once

#include <filesystem>

#include "base/fd.hpp"
#include "gossip/endpoint.hpp"

namespace todoke::gossip {

struct NodeKey {
  SecretKey key{};
  Fd lock;  // nobody else has this key as long as it is open
};

// Throws UserError for a file that can't be used.
NodeKey take_node_key(const std::filesystem::path& folder);

}  // namespace todoke::gossip

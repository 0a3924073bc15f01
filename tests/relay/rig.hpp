// A node with the relay, and the index beside it where a test searches (harness/node_rig.hpp).
#pragma once

#include <utility>

#include "harness/node_rig.hpp"

namespace todoke::test {

class RelayRig : public NodeRig {
 public:
  explicit RelayRig(NodeRigOptions options) : NodeRig(with_relay(std::move(options))) {}
  explicit RelayRig(Flags flags = {}) : RelayRig(NodeRigOptions{.roles = {}, .flags = std::move(flags)}) {}

  // Waits until the index has taken everything that is in the log.
  void await_index() const {
    await_sql(
        "SELECT last_seq >= (SELECT coalesce(max(seq), 0) FROM cn_relay.events_outbox) "
        "FROM cn_relay.consumer_offsets WHERE consumer = 'index-v1'",
        {"t"});
  }

 private:
  static NodeRigOptions with_relay(NodeRigOptions options) {
    options.roles.emplace_back("relay");
    return options;
  }
};

}  // namespace todoke::test

// A relay as a process of its own, without rate limits.
#pragma once

#include <string>
#include <vector>

#include "faults/database.hpp"
#include "harness/nostr_client.hpp"
#include "harness/todoke_process.hpp"

namespace todoke::test {

class RelayProcess : public TodokeUp {
 public:
  explicit RelayProcess(const std::filesystem::path& data_dir, const std::vector<std::string>& more = {},
                        const std::vector<std::string>& environment = {});
};

// A new client can publish and read: waits until it can.
void expect_serves(RelayProcess& relay);

}  // namespace todoke::test

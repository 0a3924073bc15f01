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

  [[nodiscard]] std::string url() { return "ws://" + public_address() + "/relay"; }
  // A metric's value by its whole name, with labels if it has any.
  [[nodiscard]] double metric(const std::string& name);
  void wait_for_metric(const std::string& name, double value);
};

// A new client can publish and read: waits until it can.
void expect_serves(RelayProcess& relay);

}  // namespace todoke::test

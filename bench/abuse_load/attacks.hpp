// Attacks on a node by clients that ask for nothing, each over and over and from ever new addresses.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace todoke::bench {

struct Attack {
  std::string name;
  // Until `over`. Two threads run it at once.
  std::function<void(std::uint16_t port, const std::atomic<bool>& over)> run;
};

const std::vector<Attack>& attacks();

}  // namespace todoke::bench

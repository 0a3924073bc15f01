#include "queue/worker_name.hpp"

#include <array>
#include <unistd.h>

#include <fmt/format.h>

#include "base/bytes.hpp"

namespace todoke::queue {
namespace {

constexpr std::size_t kRandomBytes = 4;

}  // namespace

std::string worker_name() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return fmt::format("{}:{}:{}", host.data(), getpid(), random_hex(kRandomBytes));
}

}  // namespace todoke::queue

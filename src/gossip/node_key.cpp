#include "gossip/node_key.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/secret_file.hpp"

namespace todoke::gossip {
namespace {

// Processes on one data folder.
constexpr int kKeysMax = 64;
constexpr mode_t kPrivate = 0600;
constexpr std::string_view kWhat = "the gossip key";

}  // namespace

NodeKey take_node_key(const std::filesystem::path& folder) {
  for (int number = 1; number <= kKeysMax; ++number) {
    const auto path =
        folder / (number == 1 ? std::string("gossip.key") : fmt::format("gossip-{}.key", number));
    Fd fd(open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kPrivate));
    if (!fd) {
      throw UserError(fmt::format("{} {} can't be opened: {}", kWhat, path.string(),
                                  std::generic_category().message(errno)));
    }
    if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) continue;
    NodeKey taken;
    const auto secret = read_or_make_secret(fd.get(), path, taken.key.size(), kWhat);
    std::copy(secret.begin(), secret.end(), taken.key.begin());
    taken.lock = std::move(fd);
    return taken;
  }
  throw UserError(fmt::format("{} has {} gossip keys, all in use", folder.string(), kKeysMax));
}

}  // namespace todoke::gossip

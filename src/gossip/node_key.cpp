#include "gossip/node_key.hpp"

#include <cerrno>
#include <fcntl.h>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.hpp"

namespace todoke::gossip {
namespace {

// Processes on one data folder.
constexpr int kKeysMax = 64;
constexpr mode_t kPrivate = 0600;
constexpr mode_t kAllButOwner = 077;

[[noreturn]] void throw_key_error(const std::filesystem::path& path, std::string_view what) {
  throw UserError(fmt::format("the gossip key {} {}", path.string(), what));
}

SecretKey make_key(int fd, const std::filesystem::path& path) {
  SecretKey key{};
  random_bytes(key);
  const auto text = to_hex(key) + "\n";
  const bool written = pwrite(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  if (!written || fsync(fd) != 0) {
    throw_key_error(path, "can't be written: " + std::generic_category().message(errno));
  }
  return key;
}

SecretKey read_key(int fd, const std::filesystem::path& path) {
  struct stat info{};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) throw_key_error(path, "is no file");
  if ((info.st_mode & kAllButOwner) != 0) throw_key_error(path, "can be read by others: chmod 600 mends it");
  if (info.st_size == 0) return make_key(fd, path);
  std::string text(2 * SecretKey().size() + 1, '\0');
  const auto got = pread(fd, text.data(), text.size(), 0);
  text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  if (text.ends_with('\n')) text.pop_back();
  SecretKey key{};
  if (!from_hex(text, key)) throw_key_error(path, "does not hold 64 hex digits; remove it to get a new one");
  return key;
}

}  // namespace

NodeKey take_node_key(const std::filesystem::path& folder) {
  for (int number = 1; number <= kKeysMax; ++number) {
    const auto path =
        folder / (number == 1 ? std::string("gossip.key") : fmt::format("gossip-{}.key", number));
    Fd fd(open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kPrivate));
    if (!fd) throw_key_error(path, "can't be opened: " + std::generic_category().message(errno));
    if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) continue;
    return {read_key(fd.get(), path), std::move(fd)};
  }
  throw UserError(fmt::format("{} has {} gossip keys, all in use", folder.string(), kKeysMax));
}

}  // namespace todoke::gossip

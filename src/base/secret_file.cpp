#include "base/secret_file.hpp"

#include <cerrno>
#include <fcntl.h>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"

namespace todoke {
namespace {

constexpr mode_t kPrivate = 0600;
constexpr mode_t kAllButOwner = 077;

// What the messages about one file name.
struct SecretFile {
  const std::filesystem::path& path;
  std::string_view what;

  [[noreturn]] void refuse(std::string_view why) const {
    throw UserError(fmt::format("{} {} {}", what, path.string(), why));
  }
};

std::string last_error() {
  return std::generic_category().message(errno);
}

void put_secret(int fd, const SecretFile& file, const SecretBytes& secret) {
  const auto text = to_hex(secret) + "\n";
  const bool written = pwrite(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  if (!written || fsync(fd) != 0) file.refuse("can't be written: " + last_error());
}

SecretBytes make_secret(int fd, const SecretFile& file, std::size_t size) {
  SecretBytes secret(size);
  random_bytes(secret);
  put_secret(fd, file, secret);
  return secret;
}

// So that a name survives a crash of the machine.
void sync_folder(const std::filesystem::path& folder, const SecretFile& file) {
  const Fd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || fsync(fd.get()) != 0) file.refuse("can't be written: " + last_error());
}

}  // namespace

SecretBytes read_or_make_secret(int fd, const std::filesystem::path& path, std::size_t size,
                                std::string_view what) {
  const SecretFile file{path, what};
  struct stat info{};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) file.refuse("is no file");
  if ((info.st_mode & kAllButOwner) != 0) file.refuse("can be read by others: chmod 600 mends it");
  if (info.st_size == 0) return make_secret(fd, file, size);
  std::string text(2 * size + 2, '\0');
  const auto got = pread(fd, text.data(), text.size(), 0);
  text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  if (text.ends_with('\n')) text.pop_back();
  SecretBytes secret(size);
  if (!from_hex(text, secret))
    file.refuse(fmt::format("does not hold {} hex digits; remove it to get a new one", 2 * size));
  return secret;
}

SecretBytes read_or_make_secret(const std::filesystem::path& path, std::size_t size, std::string_view what) {
  const SecretFile file{path, what};
  const Fd fd(open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kPrivate));
  if (!fd) file.refuse("can't be opened: " + last_error());
  // The process that makes the file holds the lock until it is written.
  if (flock(fd.get(), LOCK_EX) != 0) file.refuse("can't be locked: " + last_error());
  return read_or_make_secret(fd.get(), path, size, what);
}

void write_secret(const std::filesystem::path& path, const SecretBytes& secret, std::string_view what) {
  const SecretFile file{path, what};
  auto draft = path;
  draft += ".draft";
  const Fd fd(open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, kPrivate));
  if (!fd || fchmod(fd.get(), kPrivate) != 0) file.refuse("can't be written: " + last_error());
  put_secret(fd.get(), file, secret);
  if (rename(draft.c_str(), path.c_str()) != 0) file.refuse("can't be replaced: " + last_error());
  sync_folder(path.parent_path(), file);
}

}  // namespace todoke

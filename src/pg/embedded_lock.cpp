#include "pg/embedded_lock.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"

namespace todoke::pg {
namespace {

std::string owner_of(int fd) {
  std::array<char, 32> text{};
  const auto got = ::pread(fd, text.data(), text.size(), 0);
  std::string pid(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  if (const auto end = pid.find_first_not_of("0123456789"); end != std::string::npos) pid.resize(end);
  return pid.empty() ? "unknown" : pid;
}

}  // namespace

DataFolderLock::DataFolderLock(const std::string& data_dir) {
  const auto path = data_dir + "/todoke.lock";
  fd_ = Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd_) {
    throw UserError(fmt::format("todoke can't write to its data folder {}: {}", data_dir,
                                std::generic_category().message(errno)));
  }
  if (::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    if (error != EWOULDBLOCK) throw std::system_error(error, std::generic_category(), "flock " + path);
    throw UserError(
        fmt::format("the data folder {} is in use by another todoke (pid {}): stop that one, or choose "
                    "another data folder",
                    data_dir, owner_of(fd_.get())));
  }
  const auto pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd_.get(), 0) != 0 || ::pwrite(fd_.get(), pid.data(), pid.size(), 0) < 0) {
    throw std::system_error(errno, std::generic_category(), "write " + path);
  }
}

}  // namespace todoke::pg

#include "pg/embedded_folder.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"

namespace todoke::pg {
namespace {

// postgresql.conf as initdb writes it has 30 KiB.
constexpr std::size_t kFileBytesMax = 1024 * 1024;

[[noreturn]] void throw_errno(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

std::string reason(int error) {
  return std::generic_category().message(error);
}

// FNV-1a: the name must be the same in every build, which std::hash does not promise.
std::uint64_t stable_hash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

void give_to(int fd, const EmbeddedUser& user, const std::string& path) {
  if (user.identity && ::fchown(fd, user.identity->uid, user.identity->gid) != 0)
    throw_errno("chown " + path);
}

// Values of a connection string stand in single quotes.
std::string conninfo_value(std::string_view value) {
  std::string result = "'";
  for (const char c : value) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result + "'";
}

}  // namespace

EmbeddedLayout embedded_layout(const std::string& data_dir, uid_t uid) {
  auto absolute = std::filesystem::absolute(data_dir).lexically_normal().string();
  while (absolute.size() > 1 && absolute.back() == '/') absolute.pop_back();
  EmbeddedLayout layout{absolute, absolute + "/postgres", absolute + "/run"};
  const auto socket = fmt::format("{}/.s.PGSQL.{}", layout.sockets, kEmbeddedPort);
  // To libpq a comma separates hosts, and there is no way to quote it.
  if (socket.size() > kSocketPathBytesMax || socket.find(',') != std::string::npos) {
    layout.sockets = fmt::format("/tmp/todoke-{}-{:016x}", uid, stable_hash(absolute));
  }
  return layout;
}

std::string embedded_connection_string(const EmbeddedLayout& layout, std::string_view database) {
  return fmt::format("host={} port={} user=todoke dbname={}", conninfo_value(layout.sockets), kEmbeddedPort,
                     conninfo_value(database));
}

void make_data_folder(const EmbeddedLayout& layout, const EmbeddedUser& user) {
  const auto refused = [&layout](int error) {
    return UserError(
        fmt::format("todoke can't use its data folder {}: {}. Give it a folder that it may write to",
                    layout.data_dir, reason(error)));
  };
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(layout.data_dir).parent_path(), error);
  if (error) throw refused(error.value());
  // The user that root drops to passes through, and reads nothing.
  const mode_t mode = user.identity ? 0711 : 0700;
  if (::mkdir(layout.data_dir.c_str(), mode) == 0) {
    if (::chmod(layout.data_dir.c_str(), mode) != 0) throw refused(errno);
  } else if (errno != EEXIST) {
    throw refused(errno);
  } else if (!std::filesystem::is_directory(layout.data_dir)) {
    throw refused(ENOTDIR);
  }
  if (::access(layout.data_dir.c_str(), R_OK | W_OK | X_OK) != 0) throw refused(errno);
}

void make_socket_folder(const EmbeddedLayout& layout, const EmbeddedUser& user) {
  const auto& path = layout.sockets;
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) throw_errno("mkdir " + path);
  const Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) {
    throw UserError(
        fmt::format("{} must be a folder of todoke's own, for the socket of Postgres, and it is not ({}): "
                    "remove it",
                    path, reason(errno)));
  }
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) throw_errno("stat " + path);
  if (info.st_uid != ::geteuid() && info.st_uid != user.uid) {
    throw UserError(
        fmt::format("{} must be a folder of todoke's own, for the socket of Postgres, but it belongs to uid "
                    "{}: remove it",
                    path, info.st_uid));
  }
  give_to(fd.get(), user, path);
  if (::fchmod(fd.get(), 0700) != 0) throw_errno("chmod " + path);
}

void link_socket(const EmbeddedLayout& layout, int port) {
  if (port == kEmbeddedPort) return;
  const auto link = fmt::format("{}/.s.PGSQL.{}", layout.sockets, kEmbeddedPort);
  const auto fresh = link + ".todoke-new";
  if (::unlink(fresh.c_str()) != 0 && errno != ENOENT) throw_errno("unlink " + fresh);
  if (::symlink(fmt::format(".s.PGSQL.{}", port).c_str(), fresh.c_str()) != 0)
    throw_errno("symlink " + fresh);
  if (::rename(fresh.c_str(), link.c_str()) != 0) throw_errno("rename " + link);
}

SeenFolder seen_by(const EmbeddedUser& user, const std::string& folder) {
  if (!user.identity || can_reach(user.identity, {folder})) return {Fd(), folder};
  const Fd any(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!any) throw_errno("open " + folder);
  // The child replaces its standard descriptors, so it must be none of these.
  Fd fd(::fcntl(any.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!fd) throw_errno("fcntl(F_DUPFD_CLOEXEC)");
  auto path = fmt::format("/proc/self/fd/{}", fd.get());
  return {std::move(fd), std::move(path)};
}

void make_private_folder(const std::string& path, const EmbeddedUser& user) {
  if (::mkdir(path.c_str(), 0700) != 0) throw_errno("mkdir " + path);
  const Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) throw_errno("open " + path);
  if (::fchmod(fd.get(), 0700) != 0) throw_errno("chmod " + path);
  give_to(fd.get(), user, path);
}

void write_private_file(const std::string& path, std::string_view content, const EmbeddedUser& user) {
  const auto fresh = path + ".todoke-new";
  if (::unlink(fresh.c_str()) != 0 && errno != ENOENT) throw_errno("unlink " + fresh);
  const Fd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) throw_errno("open " + fresh);
  give_to(fd.get(), user, fresh);
  while (!content.empty()) {
    const auto written = ::write(fd.get(), content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_errno("write " + fresh);
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fsync(fd.get()) != 0) throw_errno("fsync " + fresh);
  if (::rename(fresh.c_str(), path.c_str()) != 0) throw_errno("rename " + path);
}

std::string read_private_file(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) throw_errno("open " + path);
  std::string content;
  std::array<char, 4096> buffer;
  for (;;) {
    const auto got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("read " + path);
    if (got == 0) return content;
    content.append(buffer.data(), static_cast<std::size_t>(got));
    if (content.size() > kFileBytesMax) throw std::runtime_error(path + " is too large");
  }
}

void sync_folder(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) throw_errno("open " + path);
  if (::fsync(fd.get()) != 0) throw_errno("fsync " + path);
}

}  // namespace todoke::pg

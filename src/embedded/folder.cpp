#include "embedded/folder.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <pwd.h>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"

namespace todoke::embedded {
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

void give_to(int fd, const User& user, const std::string& path) {
  if (user.identity && ::fchown(fd, user.identity->uid, user.identity->gid) != 0)
    throw_errno("chown " + path);
}

// Whether the user can open the folder by its path (folders above may be closed to it).
bool can_reach(const Identity& user, const std::string& folder) {
  const Fd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (!null) throw_errno("/dev/null");
  return run_program({.argv = {"/usr/bin/test", "-r", folder}, .identity = user, .output_fd = null.get()});
}

// Files of root become the user's. A file with a second name may belong to others, who would lose it.
void hand_over(int parent, const char* name, const Identity& user, const std::string& shown) {
  struct stat info{};
  if (::fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return;
    throw_errno("stat " + shown);
  }
  if (info.st_uid != 0 && !S_ISDIR(info.st_mode)) return;
  const Fd fd(::openat(parent, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!fd && errno == ENOENT) return;  // of a database that is at work
  if (!fd || ::fstat(fd.get(), &info) != 0) throw_errno("open " + shown);
  const bool is_folder = S_ISDIR(info.st_mode);
  if (info.st_uid == 0 && !is_folder && info.st_nlink > 1) {
    log::warning("node", "a file of root with several names stays root's", {{"path", shown}});
  } else if (info.st_uid == 0 &&
             ::fchownat(fd.get(), "", user.uid, user.gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0) {
    throw UserError(
        fmt::format("{} can't be given to the user that the node becomes: {}", shown, reason(errno)));
  }
  if (!is_folder) return;
  const int readable = ::openat(fd.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(readable < 0 ? nullptr : ::fdopendir(readable),
                                                   &::closedir);
  if (!folder) throw_errno("open " + shown);
  while (const auto* entry = ::readdir(folder.get())) {
    const std::string_view inside = static_cast<const char*>(entry->d_name);
    if (inside != "." && inside != "..")
      hand_over(fd.get(), static_cast<const char*>(entry->d_name), user, fmt::format("{}/{}", shown, inside));
  }
}

// What a node puts into its data folder.
bool is_of_a_node(std::string_view name) {
  return name.starts_with("postgres") || name == "run" || name == "todoke.lock" || name == "instances" ||
         (name.starts_with("gossip") && name.ends_with(".key"));
}

// A folder of root's is given away. It must be root's all the way down to it, or somebody could have led us
// there; and one that the system needs (/, /etc, root's home) is never a data folder.
void refuse_folder_of_the_system(const std::string& data_dir, const std::string& folder) {
  namespace fs = std::filesystem;
  struct stat info{};
  if (::stat(folder.c_str(), &info) != 0 || info.st_uid != 0) return;
  for (fs::path way = data_dir; way != way.root_path(); way = way.parent_path()) {
    if (::lstat(way.c_str(), &info) != 0 || info.st_uid != 0) {
      throw UserError(
          fmt::format("{} leads to a folder of root's and does not belong to root: name the "
                      "folder itself",
                      way.string()));
    }
  }
  const auto* root = ::getpwuid(0);
  const fs::path path = folder;
  const bool is_known = path == path.root_path() || path.parent_path() == path.root_path() ||
                        (root != nullptr && path == root->pw_dir);
  if (!is_known || fs::is_empty(path)) return;
  const auto entries = fs::directory_iterator(path);
  if (std::any_of(begin(entries), end(entries),
                  [](const auto& entry) { return is_of_a_node(entry.path().filename().string()); }))
    return;
  throw UserError(
      fmt::format("{} holds other things and would be given to the user that the node becomes: "
                  "choose a folder for the node alone",
                  folder));
}

// Root would have to take it from somebody.
void refuse_third_owner(const std::string& path, const User& user) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0 || info.st_uid == 0 || info.st_uid == user.uid) return;
  throw UserError(
      fmt::format("{} belongs to uid {}, but the node would run as {} (uid {}): set server.user to its "
                  "owner, or chown -R {} {}",
                  path, info.st_uid, user.name, user.uid, user.name, path));
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

std::string owner_of(int fd) {
  std::array<char, 32> text{};
  const auto got = ::pread(fd, text.data(), text.size(), 0);
  std::string pid(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  if (const auto end = pid.find_first_not_of("0123456789"); end != std::string::npos) pid.resize(end);
  return pid.empty() ? "unknown" : pid;
}

}  // namespace

Layout layout_of(const std::string& data_dir) {
  auto absolute = std::filesystem::absolute(data_dir).lexically_normal().string();
  while (absolute.size() > 1 && absolute.back() == '/') absolute.pop_back();
  Layout layout{absolute, absolute + "/postgres", absolute + "/run"};
  const auto socket = fmt::format("{}/.s.PGSQL.{}", layout.sockets, kPort);
  // To libpq a comma separates hosts, and there is no way to quote it.
  if (socket.size() > kSocketPathBytesMax || socket.find(',') != std::string::npos) {
    layout.sockets = fmt::format("/tmp/todoke-{:016x}", stable_hash(absolute));
  }
  return layout;
}

std::string url_of(const Layout& layout, std::string_view role, std::string_view database) {
  return fmt::format("host={} port={} user={} dbname={}", conninfo_value(layout.sockets), kPort, role,
                     conninfo_value(database));
}

DataFolderLock::DataFolderLock(const std::string& data_dir, const User& user) {
  const auto path = data_dir + "/todoke.lock";
  fd_ = Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd_) {
    throw UserError(fmt::format("todoke can't write to its data folder {}: {}", data_dir,
                                std::generic_category().message(errno)));
  }
  give_to(fd_.get(), user, path);
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

void make_data_folder(const Layout& layout, const User& user) {
  const auto refused = [&layout](int error) {
    return UserError(
        fmt::format("todoke can't use its data folder {}: {}. Give it a folder that it may write to",
                    layout.data_dir, reason(error)));
  };
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(layout.data_dir).parent_path(), error);
  if (error) throw refused(error.value());
  if (::mkdir(layout.data_dir.c_str(), 0700) == 0) {
    const Fd fd(::open(layout.data_dir.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd || ::fchmod(fd.get(), 0700) != 0) throw refused(errno);
    give_to(fd.get(), user, layout.data_dir);
  } else if (errno != EEXIST) {
    throw refused(errno);
  } else if (!std::filesystem::is_directory(layout.data_dir)) {
    throw refused(ENOTDIR);
  }
  if (::access(layout.data_dir.c_str(), R_OK | W_OK | X_OK) != 0) throw refused(errno);
}

void take_over(const Layout& layout, const User& user) {
  if (!user.identity) return;
  make_data_folder(layout, user);
  for (const auto& path : {layout.data_dir, layout.cluster}) refuse_third_owner(path, user);
  // The folder itself may be a link of root's.
  const auto folder = std::filesystem::canonical(layout.data_dir).string();
  refuse_folder_of_the_system(layout.data_dir, folder);
  hand_over(AT_FDCWD, folder.c_str(), *user.identity, folder);
  if (!layout.sockets.starts_with(layout.data_dir + "/"))
    hand_over(AT_FDCWD, layout.sockets.c_str(), *user.identity, layout.sockets);
  if (can_reach(*user.identity, layout.data_dir)) return;
  throw UserError(fmt::format(
      "the user {} can't reach the data folder {}, because a folder above it is closed: choose another with "
      "TODOKE_DATA_DIR, or another user with server.user",
      user.name, layout.data_dir));
}

void make_socket_folder(const Layout& layout, const User& user) {
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

void link_socket(const Layout& layout, int port) {
  if (port == kPort) return;
  const auto link = fmt::format("{}/.s.PGSQL.{}", layout.sockets, kPort);
  const auto fresh = link + ".todoke-new";
  if (::unlink(fresh.c_str()) != 0 && errno != ENOENT) throw_errno("unlink " + fresh);
  if (::symlink(fmt::format(".s.PGSQL.{}", port).c_str(), fresh.c_str()) != 0)
    throw_errno("symlink " + fresh);
  if (::rename(fresh.c_str(), link.c_str()) != 0) throw_errno("rename " + link);
}

SeenFolder seen_by(const User& user, const std::string& folder) {
  if (!user.identity || can_reach(*user.identity, folder)) return {Fd(), folder};
  const Fd any(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!any) throw_errno("open " + folder);
  Fd fd(::fcntl(any.get(), F_DUPFD_CLOEXEC, kParentFolderFdMin));
  if (!fd) throw_errno("fcntl(F_DUPFD_CLOEXEC)");
  return {std::move(fd), folder};
}

std::string path_in_child(const SeenFolder& folder, Program& program) {
  if (!folder.fd) return folder.path;
  program.folders.push_back(folder.fd.get());
  return fmt::format("/proc/self/fd/{}", kFirstFolderFd + static_cast<int>(program.folders.size()) - 1);
}

void make_private_folder(const std::string& path, const User& user) {
  if (::mkdir(path.c_str(), 0700) != 0) throw_errno("mkdir " + path);
  const Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) throw_errno("open " + path);
  if (::fchmod(fd.get(), 0700) != 0) throw_errno("chmod " + path);
  give_to(fd.get(), user, path);
}

void write_private_file(const std::string& path, std::string_view content, const User& user) {
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

}  // namespace todoke::embedded

#include "embedded/leftovers.hpp"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <signal.h>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "base/text.hpp"
#include "embedded/child.hpp"

namespace todoke::embedded {
namespace {

// The status stands on this line of postmaster.pid, padded with blanks ("ready   "); pg_ctl relies on it too.
constexpr int kStatusLine = 8;

enum class Belongs { yes, no, unknown };

std::string proc(pid_t pid, std::string_view name) {
  return "/proc/" + std::to_string(pid) + "/" + std::string(name);
}

Belongs belongs(pid_t pid, const struct stat& cluster) {
  std::string command;
  std::ifstream comm(proc(pid, "comm"));
  if (!std::getline(comm, command)) return Belongs::no;  // gone
  if (command != "postgres") return Belongs::no;
  struct stat cwd{};
  if (::stat(proc(pid, "cwd").c_str(), &cwd) != 0) return errno == ENOENT ? Belongs::no : Belongs::unknown;
  return cwd.st_dev == cluster.st_dev && cwd.st_ino == cluster.st_ino ? Belongs::yes : Belongs::no;
}

std::optional<pid_t> number(std::string_view text) {
  const auto value = parse_number<pid_t>(text).value_or(0);
  // A negative number is the pid of a stand-alone backend.
  if (value == 0) return std::nullopt;
  return value < 0 ? -value : value;
}

bool stat_folder(const std::string& path, struct stat& info) {
  if (::stat(path.c_str(), &info) == 0) return true;
  if (errno == ENOENT) return false;
  throw std::system_error(errno, std::generic_category(), "stat " + path);
}

}  // namespace

std::vector<pid_t> processes_of_cluster(const std::string& cluster) {
  std::vector<pid_t> found;
  struct stat folder{};
  if (!stat_folder(cluster, folder)) return found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto pid = number(entry.path().filename().string());
    if (pid && belongs(*pid, folder) == Belongs::yes) found.push_back(*pid);
  }
  return found;
}

void signal_cluster_process(pid_t pid, const std::string& cluster, int signal_number) {
  struct stat folder{};
  if (!stat_folder(cluster, folder)) return;
  // Opened before the check: the number can't pass to another process in between.
  const auto pidfd = open_pidfd(pid);
  if (!pidfd || belongs(pid, folder) != Belongs::yes) return;
  if (!send_to_pidfd(pidfd.get(), signal_number) && errno != ESRCH) {
    throw std::system_error(errno, std::generic_category(),
                            "can't signal the Postgres with pid " + std::to_string(pid));
  }
}

std::optional<pid_t> lock_file_pid(const std::string& lock_file) {
  std::ifstream stream(lock_file);
  std::string line;
  if (!std::getline(stream, line)) return std::nullopt;
  return number(line);
}

bool postmaster_is_ready(const std::string& cluster, pid_t pid) {
  std::ifstream stream(cluster + "/postmaster.pid");
  std::string line;
  for (int i = 1; i <= kStatusLine; ++i) {
    if (!std::getline(stream, line)) return false;
    if (i == 1 && number(line) != pid) return false;
  }
  return line.starts_with("ready");
}

bool remove_recycled_lock(const std::string& lock_file, const std::string& cluster) {
  const auto pid = lock_file_pid(lock_file);
  struct stat folder{};
  if (!pid || !stat_folder(cluster, folder)) return false;
  if (!std::filesystem::exists(proc(*pid, ""))) return false;
  if (belongs(*pid, folder) != Belongs::no) return false;
  if (::unlink(lock_file.c_str()) != 0) {
    throw std::system_error(errno, std::generic_category(), "unlink " + lock_file);
  }
  return true;
}

}  // namespace todoke::embedded

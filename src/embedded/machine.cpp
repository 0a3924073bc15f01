#include "embedded/machine.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <sys/statvfs.h>
#include <system_error>

#include "base/text.hpp"

namespace todoke::embedded {
namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

// "max" and files that don't exist mean no limit; v1 writes a number near 2^63 for it, which is larger than
// any MemTotal.
std::uint64_t limit_in(const std::string& file) {
  std::string text;
  std::ifstream stream(file);
  if (!(stream >> text)) return kNoLimit;
  return parse_number<std::uint64_t>(text).value_or(kNoLimit);
}

// A group is bound by its own limit and by those of all groups above it.
std::uint64_t limit_along(const std::string& mount, std::string group, const std::string& file) {
  auto limit = kNoLimit;
  for (;;) {
    limit = std::min(limit, limit_in(mount + group + "/" + file));
    const auto slash = group.rfind('/');
    if (group.empty() || slash == std::string::npos) return limit;
    group.resize(slash);
  }
}

std::optional<std::uint64_t> memory_total(const std::string& root) {
  std::ifstream stream(root + "/proc/meminfo");
  std::string name;
  std::uint64_t kibibytes = 0;
  std::string unit;
  while (stream >> name >> kibibytes) {
    if (name == "MemTotal:") return kibibytes * 1024;
    std::getline(stream, unit);
  }
  return std::nullopt;
}

}  // namespace

std::uint64_t machine_memory_bytes(const std::string& root) {
  const auto total = memory_total(root);
  if (!total) throw std::runtime_error("no MemTotal in " + root + "/proc/meminfo");
  auto bytes = *total;
  std::ifstream groups(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    // hierarchy:controllers:path; v2 has hierarchy 0 and no controllers.
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const auto group = line.substr(second + 1);
    if (controllers == ",,") {
      bytes = std::min(bytes, limit_along(root + "/sys/fs/cgroup", group, "memory.max"));
    } else if (controllers.find(",memory,") != std::string::npos) {
      bytes = std::min(bytes, limit_along(root + "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes"));
    }
  }
  return bytes;
}

std::uint64_t free_disk_bytes(const std::string& folder) {
  struct statvfs info{};
  if (::statvfs(folder.c_str(), &info) != 0)
    throw std::system_error(errno, std::generic_category(), "statvfs " + folder);
  return static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
}

}  // namespace todoke::embedded

#include "app/instance_file.hpp"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <fstream>
#include <optional>
#include <unistd.h>

#include "base/error.hpp"

namespace todoke::app {
namespace {

std::filesystem::path folder_of(const std::filesystem::path& data_dir) {
  return data_dir / "instances";
}

// When a process began, in clock ticks since boot: a pid that was used again has another value.
std::string start_time_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const auto name_end = line.rfind(')');
  if (name_end == std::string::npos) return {};
  constexpr int kFieldsBeforeStartTime = 19;  // state is the first after the name, starttime the twentieth
  auto at = name_end + 2;
  for (int i = 0; i < kFieldsBeforeStartTime && at != std::string::npos; ++i) {
    at = line.find(' ', at);
    if (at != std::string::npos) ++at;
  }
  return at == std::string::npos ? std::string() : line.substr(at, line.find(' ', at) - at);
}

std::optional<Instance> read(const std::filesystem::path& path) {
  const auto name = path.filename().string();
  Instance instance;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), instance.pid);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (const auto equals = line.find('='); equals != std::string::npos) {
      instance.notes[line.substr(0, equals)] = line.substr(equals + 1);
    }
  }
  return instance;
}

}  // namespace

InstanceFile::InstanceFile(const std::filesystem::path& data_dir,
                           const std::map<std::string, std::string>& notes)
    : path_(folder_of(data_dir) / std::to_string(getpid())) {
  std::filesystem::create_directories(path_.parent_path());
  const auto draft = path_.string() + ".new";
  {
    std::ofstream file(draft);
    for (const auto& [name, value] : notes) file << name << '=' << value << '\n';
    file << "process_start=" << start_time_of(getpid()) << '\n';
    if (!file.flush()) throw UserError(draft + ": can't be written; is the disk full?");
  }
  std::filesystem::rename(draft, path_);
}

InstanceFile::~InstanceFile() {
  std::error_code ignored;  // what is left behind is recognised as stale
  std::filesystem::remove(path_, ignored);
}

std::vector<Instance> running_instances(const std::filesystem::path& data_dir) {
  std::vector<Instance> running;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_of(data_dir), error)) {
    auto instance = read(entry.path());
    if (!instance) continue;
    const auto began = start_time_of(instance->pid);
    if (!began.empty() && began == instance->notes["process_start"]) {
      running.push_back(std::move(*instance));
    } else {
      std::error_code ignored;  // another reader may have removed it, or it may not be ours to remove
      std::filesystem::remove(entry.path(), ignored);
    }
  }
  std::sort(running.begin(), running.end(),
            [](const Instance& a, const Instance& b) { return a.pid < b.pid; });
  return running;
}

}  // namespace todoke::app

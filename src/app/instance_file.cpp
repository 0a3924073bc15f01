#include "app/instance_file.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <optional>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/text.hpp"

namespace todoke::app {
namespace {

std::filesystem::path folder_of(const std::filesystem::path& data_dir) {
  return data_dir / "instances";
}

// When a process began, in clock ticks since boot: a pid that was used again has another value. Nothing for
// one that has ended, also when it is a zombie.
std::string start_time_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const auto name_end = line.rfind(')');
  if (name_end == std::string::npos || line.compare(name_end, 3, ") Z") == 0) return {};
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
  const auto pid = parse_number<pid_t>(name);
  if (!pid) return std::nullopt;
  Instance instance;
  instance.pid = *pid;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (const auto equals = line.find('='); equals != std::string::npos) {
      instance.notes[line.substr(0, equals)] = line.substr(equals + 1);
    }
  }
  return instance;
}

constexpr std::string_view kFileNote = "config_file";
constexpr std::string_view kFlagNote = "flag.";
constexpr std::string_view kEnvironmentNote = "environment.";

}  // namespace

std::map<std::string, std::string> settings_notes(const Config& config) {
  std::map<std::string, std::string> notes;
  if (!config.file().empty()) notes.emplace(kFileNote, config.file());
  for (const auto& [name, spec] : config.schema().keys()) {
    const auto value = format_value(*spec, config.setting(name).value);
    // A note is a line.
    if (spec->secret || !config.is_pinned(name) || value.find('\n') != std::string::npos) continue;
    const auto kind = config.setting(name).layer == Layer::flag ? kFlagNote : kEnvironmentNote;
    notes.emplace(fmt::format("{}{}", kind, name), value);
  }
  for (const auto& removed : config.removed_settings()) {
    if (removed.layer >= Layer::environment) notes.emplace(fmt::format("{}{}", kFlagNote, removed.key), "");
  }
  return notes;
}

Config config_of(const Instance& instance, const Schema& schema) {
  Config config(schema);
  if (const auto file = instance.notes.find(std::string(kFileNote)); file != instance.notes.end())
    config.load_file(file->second);
  for (const auto& [name, value] : instance.notes) {
    for (const auto kind : {kFlagNote, kEnvironmentNote}) {
      const auto key = name.starts_with(kind) ? name.substr(kind.size()) : std::string();
      // A node of another version may have keys that this binary does not know.
      if (!schema.accepts(key)) continue;
      if (kind == kFlagNote) {
        config.set_flag(key, value);
      } else {
        config.load_environment(std::vector{fmt::format("{}={}", environment_name(key), value)});
      }
    }
  }
  return config;
}

Config config_of_next_start(const Instance& instance, const Config& own) {
  auto config = config_of(instance, own.schema());
  for (const auto& [name, spec] : own.schema().keys()) {
    if (spec->secret && config.is_default(name) && !own.is_default(name))
      config.set_flag(name, format_value(*spec, own.setting(name).value));
  }
  return config;
}

std::string pinned_by(const std::vector<Instance>& instances, std::string_view key) {
  for (const auto& instance : instances) {
    if (instance.notes.contains(fmt::format("{}{}", kFlagNote, key)))
      return fmt::format("--{} of the node with pid {}", key, instance.pid);
    if (instance.notes.contains(fmt::format("{}{}", kEnvironmentNote, key)))
      return fmt::format("{} of the node with pid {}", environment_name(key), instance.pid);
  }
  return {};
}

InstanceFile::InstanceFile(const std::filesystem::path& data_dir,
                           const std::map<std::string, std::string>& notes)
    : path_(folder_of(data_dir) / std::to_string(getpid())) {
  std::string text;
  for (const auto& [name, value] : notes) text += name + "=" + value + "\n";
  text += "process_start=" + start_time_of(getpid()) + "\n";

  const auto folder = path_.parent_path();
  mkdir(folder.c_str(), 0755);
  struct stat info{};
  // A node that stays root finds the folder of one that did not.
  if (geteuid() == 0 && lchown(folder.c_str(), 0, 0) != 0)
    throw UserError(folder.string() + " can't be taken over: " + std::generic_category().message(errno));
  if (lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid()) {
    throw UserError(folder.string() + " must be a folder of the user that runs todoke; remove it");
  }
  // The folder is ours alone to write, so nobody can put a link in the way of the draft.
  const auto draft = path_.string() + ".new";
  unlink(draft.c_str());
  const Fd fd(open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  const bool written = fd && write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int error = errno;
  if (!written) throw UserError(draft + " can't be written: " + std::generic_category().message(error));
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

// What a running node notes about itself in its data folder, so that `todoke doctor`, `psql` and scripts find
// it: <data_dir>/instances/<pid>, lines of `name=value`, written when it serves and removed when it stops. A
// file whose process is gone was left by a kill -9; readers skip and remove it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <sys/types.h>
#include <vector>

namespace todoke::app {

struct Instance {
  pid_t pid = 0;
  std::map<std::string, std::string> notes;  // version, roles, public, internal, database, started_at
};

class InstanceFile {
 public:
  // Writes the file (atomically: under another name, then renamed).
  InstanceFile(const std::filesystem::path& data_dir, const std::map<std::string, std::string>& notes);
  ~InstanceFile();
  InstanceFile(const InstanceFile&) = delete;
  InstanceFile& operator=(const InstanceFile&) = delete;

 private:
  std::filesystem::path path_;
};

// Those that run now, by pid.
std::vector<Instance> running_instances(const std::filesystem::path& data_dir);

}  // namespace todoke::app

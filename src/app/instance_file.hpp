// What a running node notes about itself in its data folder, so that `todoke doctor`, `psql` and scripts find
// it: <data_dir>/instances/<pid>, lines of `name=value`, written when it serves and removed when it stops. A
// file whose process is gone was left by a kill -9; readers skip and remove it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <sys/types.h>
#include <vector>

#include "base/config.hpp"

namespace todoke::app {

// Notes of the database: kEmbedded or kConfigured, and of a configured one where it is
// (connection_in_use.hpp).
inline constexpr const char* kDatabaseNote = "database";
inline constexpr const char* kDatabaseAtNote = "database_at";
inline constexpr const char* kEmbedded = "embedded";
inline constexpr const char* kConfigured = "configured";

struct Instance {
  pid_t pid = 0;
  // version, roles, public, internal, database, database_at, started_at, and what settings_notes() makes.
  std::map<std::string, std::string> notes;
};

// The node's configuration as notes: its file, and what its flags and its environment set. Secrets are left
// out: others may read the notes.
std::map<std::string, std::string> settings_notes(const Config& config);
// The other way round: the file as it is now, with those settings over it. Throws UserError as Config does.
Config config_of(const Instance& instance, const Schema& schema);
// What the node's next start would have. Its secrets are not in its notes; those of `own`, the configuration
// of this shell, stand for them. Throws UserError as Config does.
Config config_of_next_start(const Instance& instance, const Config& own);
// The flag or variable of a running node that pins a key, with the node's pid; empty: none does.
std::string pinned_by(const std::vector<Instance>& instances, std::string_view key);

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

// A node that root starts: it takes its ports, reads its certificates and tokens, and then becomes another
// user for good (server.user), unless it is told to stay root.
#pragma once

#include <filesystem>
#include <string>

#include "base/config.hpp"

namespace todoke::app {

// Whether this process is root and will not stay so.
bool gives_up_root(const Config& config);

// Before any thread of the node is started.
void begin_as_root();

// Gives what root has left in the data folder to the user, and becomes that user. Returns its name; empty
// where the process is not root, or stays root. `embedded_database`: the data folder has the database. Throws
// UserError when it can't become the user.
std::string give_up_root(const Config& config, const std::filesystem::path& folder, bool embedded_database);

// Logs which files of the configuration `user` can't read: they stay as they were read at the start.
void tell_root_only(const Config& config, const std::string& user);

}  // namespace todoke::app

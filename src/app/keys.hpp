// The keys that belong to no room, and the schema: the keys of all rooms.
#pragma once

#include <span>
#include <string>

#include "base/config.hpp"

namespace todoke::app::keys {

inline constexpr Key<std::string> kDataDir{{
    .name = "data_dir",
    .type = KeyType::path,
    .fallback = "",
    .meaning = "Folder of the embedded database and of what a running node notes about itself. Empty: "
               "/var/lib/todoke for "
               "root, otherwise todoke in $XDG_DATA_HOME or ~/.local/share.",
}};

inline constexpr Key<std::string> kLogLevel{{
    .name = "log.level",
    .fallback = "info",
    .meaning = "The least level that is written.",
    .choices = "debug|info|warning|error",
    .live = true,
}};

inline constexpr Key<std::string> kLogFormat{{
    .name = "log.format",
    .fallback = "auto",
    .meaning = "How a line is written. auto: for human eyes on a terminal, JSON otherwise.",
    .choices = "auto|human|json",
}};

std::span<const KeySpec* const> all();

}  // namespace todoke::app::keys

namespace todoke::app {

// The keys of all rooms.
const Schema& schema();

// Level and format of the logs, for commands that write any.
void configure_logs(const Config& config);

}  // namespace todoke::app

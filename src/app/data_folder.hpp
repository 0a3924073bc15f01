// Where the node keeps its data.
#pragma once

#include <filesystem>

#include "base/config.hpp"

namespace todoke::app {

// `data_dir` as an absolute path; where it is empty, /var/lib/todoke for root and the user's own data folder
// otherwise.
std::filesystem::path data_folder(const Config& config);

}  // namespace todoke::app

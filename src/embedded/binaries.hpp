// Which installed Postgres to run.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace todoke::embedded {

// New clusters get at least this version.
inline constexpr int kPostgresMajorMin = 15;

struct PostgresBinaries {
  std::string bin_dir;
  int major = 0;
};

// The versions under <root>/<major>/bin that have both initdb and postgres, lowest first.
std::vector<PostgresBinaries> installed_postgres(const std::string& root = "/usr/lib/postgresql");

// "postgres (PostgreSQL) 15.19 (Debian …)" is 15.
std::optional<int> major_from_version_text(std::string_view text);

// The same major version as the cluster, or the highest for a new cluster. `data_dir` is for the message of a
// refusal.
Expected<PostgresBinaries> choose_postgres(const std::vector<PostgresBinaries>& installed,
                                           std::optional<int> cluster_major, const std::string& data_dir);

}  // namespace todoke::embedded

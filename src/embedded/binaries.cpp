#include "embedded/binaries.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <unistd.h>

#include <fmt/format.h>

namespace todoke::embedded {
namespace {

// A whole number at the start of `text`; none when it starts otherwise.
std::optional<int> leading_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value <= 0) return std::nullopt;
  return value;
}

bool has_programs(const std::string& bin_dir) {
  return ::access((bin_dir + "/initdb").c_str(), X_OK) == 0 &&
         ::access((bin_dir + "/postgres").c_str(), X_OK) == 0;
}

}  // namespace

std::vector<PostgresBinaries> installed_postgres(const std::string& root) {
  std::vector<PostgresBinaries> found;
  std::error_code missing;  // no such folder: nothing is installed
  for (const auto& entry : std::filesystem::directory_iterator(root, missing)) {
    const auto major = leading_number(entry.path().filename().string());
    const auto bin_dir = (entry.path() / "bin").string();
    if (major && has_programs(bin_dir)) found.push_back({bin_dir, *major});
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.major < b.major; });
  return found;
}

std::optional<int> major_from_version_text(std::string_view text) {
  constexpr std::string_view kMark = "(PostgreSQL) ";
  const auto at = text.find(kMark);
  if (at == std::string_view::npos) return std::nullopt;
  return leading_number(text.substr(at + kMark.size()));
}

Expected<PostgresBinaries> choose_postgres(const std::vector<PostgresBinaries>& installed,
                                           std::optional<int> cluster_major, const std::string& data_dir) {
  if (installed.empty()) {
    return refuse(
        fmt::format("Postgres is not installed: apt-get install postgresql-{} (or run make up), or set "
                    "database.embedded_bin_dir",
                    cluster_major.value_or(kPostgresMajorMin)));
  }
  std::vector<int> majors;
  for (const auto& one : installed) majors.push_back(one.major);
  const auto shown = fmt::format("{}", fmt::join(majors, ", "));
  if (cluster_major) {
    const auto same = std::find(majors.begin(), majors.end(), *cluster_major);
    if (same != majors.end()) return installed[static_cast<std::size_t>(same - majors.begin())];
    return refuse(
        fmt::format("the data folder {} was made by Postgres {} but only {} {} installed: install "
                    "postgresql-{}, or upgrade the "
                    "cluster with pg_upgrade",
                    data_dir, *cluster_major, shown, majors.size() == 1 ? "is" : "are", *cluster_major));
  }
  if (majors.back() < kPostgresMajorMin) {
    return refuse(
        fmt::format("Postgres {} or later is needed but only {} {} installed: apt-get install postgresql-{}",
                    kPostgresMajorMin, shown, majors.size() == 1 ? "is" : "are", kPostgresMajorMin));
  }
  return installed.back();
}

}  // namespace todoke::embedded

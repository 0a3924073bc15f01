// How far the copy of a cluster is, on stderr, in MiB. One thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "app/progress.hpp"

namespace todoke::app {

class CopyProgress {
 public:
  void show(std::uint64_t done, std::uint64_t total) {
    done_ = done;
    if (!progress_.is_due()) return;
    std::optional<double> part;
    if (total > 0) part = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
    progress_.show(fmt::format("{} MiB", mebibytes()), mebibytes(), part);
  }
  // Ends the line.
  std::string summary() {
    progress_.end();
    return fmt::format("{} MiB in {:.1f} s", mebibytes(), progress_.passed().count());
  }

 private:
  [[nodiscard]] std::uint64_t mebibytes() const { return done_ / kMebibyte; }

  static constexpr std::uint64_t kMebibyte = 1024 * 1024;
  Progress progress_;
  std::uint64_t done_ = 0;
};

}  // namespace todoke::app

// How long a row waits after a failure: by table, plus 0 to 20 % so that many don't come back at once. Never
// less than the table says.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace todoke::queue {

class RetryTable {
 public:
  static constexpr double kJitterMost = 0.2;
  static constexpr std::size_t kEntriesMax = 64;
  static constexpr std::chrono::seconds kDelayMost{7 * 24 * 3600};

  // Refuses an empty table and entries that are no whole number of seconds from 0 to a week. Brackets around
  // the list, as in [5,10], and spaces are accepted.
  static Expected<RetryTable> parse(const std::vector<std::string>& entries);
  explicit RetryTable(std::vector<std::chrono::seconds> delays);

  // After the failure number `failures`, from 1 on; beyond the table its last entry holds. `jitter` is from 0
  // to 1.
  [[nodiscard]] std::chrono::milliseconds delay(int failures, double jitter) const;
  [[nodiscard]] const std::vector<std::chrono::seconds>& delays() const { return delays_; }

 private:
  std::vector<std::chrono::seconds> delays_;
};

}  // namespace todoke::queue

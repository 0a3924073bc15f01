#include "queue/retry_table.hpp"

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

#include "base/text.hpp"

namespace todoke::queue {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kAround = " \t[]";
  const auto first = text.find_first_not_of(kAround);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kAround) - first + 1);
}

}  // namespace

Expected<RetryTable> RetryTable::parse(const std::vector<std::string>& entries) {
  std::vector<std::chrono::seconds> delays;
  for (const auto& entry : entries) {
    const auto seconds = parse_number<std::int64_t>(trimmed(entry)).value_or(-1);
    if (seconds < 0 || seconds > kDelayMost.count()) {
      return refuse(
          fmt::format("'{}' is no number of seconds from 0 to {}; write 5,10,20", entry, kDelayMost.count()));
    }
    delays.emplace_back(seconds);
  }
  if (delays.empty() || delays.size() > kEntriesMax) {
    return refuse(fmt::format("the list must have 1 to {} entries, such as 5,10,20", kEntriesMax));
  }
  return RetryTable(std::move(delays));
}

RetryTable::RetryTable(std::vector<std::chrono::seconds> delays) : delays_(std::move(delays)) {
  if (delays_.empty()) throw std::invalid_argument("a retry table needs an entry");
}

std::chrono::milliseconds RetryTable::delay(int failures, double jitter) const {
  const auto at = std::min(static_cast<std::size_t>(std::max(failures, 1)), delays_.size()) - 1;
  const auto base = std::chrono::milliseconds(delays_[at]);
  const auto more = static_cast<double>(base.count()) * kJitterMost * std::clamp(jitter, 0.0, 1.0);
  return base + std::chrono::milliseconds(static_cast<std::int64_t>(more));
}

}  // namespace todoke::queue

#include "orders/core/timestamp.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include <fmt/format.h>

namespace todoke::orders {
namespace {

using namespace std::chrono;

constexpr std::size_t kMicrosDigits = 6;
constexpr unsigned kYearFirst = 1678;
constexpr unsigned kYearLast = 2261;

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  // A number of exactly so many digits.
  std::optional<unsigned> digits(std::size_t count) {
    if (rest_.size() < count) return std::nullopt;
    unsigned value = 0;
    for (const char c : rest_.substr(0, count)) {
      if (c < '0' || c > '9') return std::nullopt;
      value = value * 10 + static_cast<unsigned>(c - '0');
    }
    rest_.remove_prefix(count);
    return value;
  }

  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // Three numbers with `between` between them; the first has `first` digits, the others two.
  std::optional<std::array<unsigned, 3>> triple(std::size_t first, char between) {
    const auto a = digits(first);
    if (!a || !take(between)) return std::nullopt;
    const auto b = digits(2);
    if (!b || !take(between)) return std::nullopt;
    const auto c = digits(2);
    if (!c) return std::nullopt;
    return std::array{*a, *b, *c};
  }

  // After the point.
  std::optional<microseconds> fraction() {
    const auto end = std::find_if(rest_.begin(), rest_.end(), [](char c) { return c < '0' || c > '9'; });
    const auto count = static_cast<std::size_t>(end - rest_.begin());
    if (count == 0) return std::nullopt;
    std::string kept(rest_.substr(0, std::min(count, kMicrosDigits)));
    kept.resize(kMicrosDigits, '0');
    rest_.remove_prefix(count);
    return microseconds(std::stol(kept));
  }

  std::optional<minutes> offset() {
    if (take('Z') || take('z')) return minutes(0);
    const bool west = take('-');
    if (!west && !take('+')) return std::nullopt;
    const auto hour = digits(2);
    if (!hour || !take(':')) return std::nullopt;
    const auto minute = digits(2);
    if (!minute || *hour > 23 || *minute > 59) return std::nullopt;
    const auto east = hours(*hour) + minutes(*minute);
    return west ? -east : east;
  }

  [[nodiscard]] bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace

std::optional<SystemTime> parse_timestamp(std::string_view text) {
  Reader reader(text);
  const auto date = reader.triple(4, '-');
  if (!date || (!reader.take('T') && !reader.take('t'))) return std::nullopt;
  const auto [y, m, d] = *date;
  const year_month_day day(year(static_cast<int>(y)), month(m), std::chrono::day(d));
  const auto time = reader.triple(2, ':');
  if (!time || !day.ok() || y < kYearFirst || y > kYearLast) return std::nullopt;
  const auto [hour, minute, second] = *time;
  if (hour > 23 || minute > 59 || second > 60) return std::nullopt;
  std::optional<microseconds> fraction = microseconds(0);
  if (reader.take('.')) fraction = reader.fraction();
  if (!fraction) return std::nullopt;
  const auto offset = reader.offset();
  if (!offset || !reader.at_end()) return std::nullopt;
  return SystemTime(sys_days(day).time_since_epoch() + hours(hour) + minutes(minute) + seconds(second) +
                    *fraction - *offset);
}

std::string format_timestamp(SystemTime time) {
  const auto whole = floor<microseconds>(time);
  const auto days = floor<std::chrono::days>(whole);
  const year_month_day date(days);
  const hh_mm_ss clock(whole - days);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     clock.subseconds().count());
}

}  // namespace todoke::orders

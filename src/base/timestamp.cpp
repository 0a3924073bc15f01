#include "base/timestamp.hpp"

#include <algorithm>
#include <array>
#include <ctime>

#include <fmt/format.h>

namespace todoke {
namespace {

using namespace std::chrono;

constexpr std::size_t kMicrosDigits = 6;
constexpr unsigned kYearFirst = 1678;
constexpr unsigned kYearLast = 2261;

// Reads from the front of a text.
class TimestampReader {
 public:
  explicit TimestampReader(std::string_view text) : rest_(text) {}

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

  bool skip(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // Three numbers with `between` between them; the first has `first` digits, the others two.
  std::optional<std::array<unsigned, 3>> triple(std::size_t first, char between) {
    const auto a = digits(first);
    if (!a || !skip(between)) return std::nullopt;
    const auto b = digits(2);
    if (!b || !skip(between)) return std::nullopt;
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
    if (skip('Z') || skip('z')) return minutes(0);
    const bool west = skip('-');
    if (!west && !skip('+')) return std::nullopt;
    const auto hour = digits(2);
    if (!hour || !skip(':')) return std::nullopt;
    const auto minute = digits(2);
    if (!minute || *hour > 23 || *minute > 59) return std::nullopt;
    const auto east = hours(*hour) + minutes(*minute);
    return west ? -east : east;
  }

  [[nodiscard]] bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

// Without a locale: the names of days and months are English by definition.
constexpr std::array kDayNames{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array kMonthNames{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                 "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

struct DateAndTime {
  explicit DateAndTime(SystemTime time)
      : whole(floor<microseconds>(time)), date(floor<days>(whole)), clock(whole - floor<days>(whole)) {}

  sys_time<microseconds> whole;
  year_month_day date;
  hh_mm_ss<microseconds> clock;
};

}  // namespace

std::optional<SystemTime> parse_timestamp(std::string_view text) {
  TimestampReader reader(text);
  const auto date = reader.triple(4, '-');
  if (!date || (!reader.skip('T') && !reader.skip('t'))) return std::nullopt;
  const auto [y, m, d] = *date;
  const year_month_day day(year(static_cast<int>(y)), month(m), std::chrono::day(d));
  const auto time = reader.triple(2, ':');
  if (!time || !day.ok() || y < kYearFirst || y > kYearLast) return std::nullopt;
  const auto [hour, minute, second] = *time;
  if (hour > 23 || minute > 59 || second > 60) return std::nullopt;
  std::optional<microseconds> fraction = microseconds(0);
  if (reader.skip('.')) fraction = reader.fraction();
  if (!fraction) return std::nullopt;
  const auto offset = reader.offset();
  if (!offset || !reader.at_end()) return std::nullopt;
  return SystemTime(sys_days(day).time_since_epoch() + hours(hour) + minutes(minute) + seconds(second) +
                    *fraction - *offset);
}

std::string format_timestamp(SystemTime time, unsigned fraction_digits) {
  const DateAndTime at(time);
  auto text = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}", static_cast<int>(at.date.year()),
                          static_cast<unsigned>(at.date.month()), static_cast<unsigned>(at.date.day()),
                          at.clock.hours().count(), at.clock.minutes().count(), at.clock.seconds().count(),
                          at.clock.subseconds().count());
  const auto cut = kMicrosDigits - std::min<std::size_t>(fraction_digits, kMicrosDigits);
  text.resize(text.size() - cut - (fraction_digits == 0 ? 1 : 0));
  return text + "Z";
}

std::optional<SystemTime> parse_http_date(const std::string& text) {
  std::tm date{};
  const char* rest = strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &date);
  if (rest != text.c_str() + text.size()) return std::nullopt;
  constexpr int kYearOfTm = 1900;
  const int year = date.tm_year + kYearOfTm;
  if (year < static_cast<int>(kYearFirst) || year > static_cast<int>(kYearLast)) return std::nullopt;
  return system_clock::from_time_t(timegm(&date));
}

std::string format_http_date(SystemTime time) {
  const DateAndTime at(time);
  const weekday day(floor<days>(at.whole));
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kDayNames[day.c_encoding()],
                     static_cast<unsigned>(at.date.day()),
                     kMonthNames[static_cast<unsigned>(at.date.month()) - 1],
                     static_cast<int>(at.date.year()), at.clock.hours().count(), at.clock.minutes().count(),
                     at.clock.seconds().count());
}

}  // namespace todoke

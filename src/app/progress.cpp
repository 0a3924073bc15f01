#include "app/progress.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <unistd.h>

#include <fmt/format.h>

namespace todoke::app {
namespace {

constexpr std::chrono::seconds kEveryOnTerminal(1);
constexpr std::chrono::seconds kEveryInLog(10);
// Before that the rate says little about the rest.
constexpr double kPartLeast = 0.001;

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 3'600;
  if (whole < kMinute) return fmt::format("{} s", whole);
  if (whole < kHour) return fmt::format("{} m {:02} s", whole / kMinute, whole % kMinute);
  return fmt::format("{} h {:02} m", whole / kHour, whole % kHour / kMinute);
}

}  // namespace

std::string rate_text(std::uint64_t count, std::chrono::duration<double> passed, std::optional<double> part) {
  const auto seconds = std::max(passed.count(), 0.001);
  auto text = fmt::format("{:.0f}/s", static_cast<double>(count) / seconds);
  if (!part) return text;
  text += fmt::format(", {:.0f} %", *part * 100);
  if (*part >= kPartLeast) text += fmt::format(", {} left", duration_text(seconds * (1 - *part) / *part));
  return text;
}

Progress::Progress()
    : terminal_(isatty(STDERR_FILENO) != 0),
      began_(std::chrono::steady_clock::now()),
      next_(began_ + (terminal_ ? kEveryOnTerminal : kEveryInLog)) {}

void Progress::show(const std::string& what, std::uint64_t count, std::optional<double> part) {
  const auto text = fmt::format("{}, {}", what, rate_text(count, passed(), part));
  std::fputs(terminal_ ? fmt::format("\r{}\x1b[K", text).c_str() : (text + "\n").c_str(), stderr);
  shown_ = true;
  next_ = std::chrono::steady_clock::now() + (terminal_ ? kEveryOnTerminal : kEveryInLog);
}

void Progress::end() {
  if (terminal_ && shown_) std::fputs("\n", stderr);
  shown_ = false;
}

}  // namespace todoke::app

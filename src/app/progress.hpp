// How far a long command is, on stderr: a line that is written over on a terminal, one every ten seconds
// elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace todoke::app {

// "1,234/s, 57 %, 2 m 05 s left"; without `part` (0 to 1, how much of the whole is done) the rate alone.
std::string rate_text(std::uint64_t count, std::chrono::duration<double> passed, std::optional<double> part);

class Progress {
 public:
  Progress();

  // Whether it is time for a line.
  [[nodiscard]] bool is_due() const { return std::chrono::steady_clock::now() >= next_; }
  // `what` comes before the rate, such as "1234 events".
  void show(const std::string& what, std::uint64_t count, std::optional<double> part);
  // Ends the line on a terminal, so that what follows stands below.
  void end();

  [[nodiscard]] std::chrono::duration<double> passed() const {
    return std::chrono::steady_clock::now() - began_;
  }

 private:
  const bool terminal_;
  const std::chrono::steady_clock::time_point began_;
  std::chrono::steady_clock::time_point next_;
  bool shown_ = false;
};

}  // namespace todoke::app

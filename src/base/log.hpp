// Structured logs: a component, a message and fields with stable names, as JSON lines or for human eyes, on
// stderr. A line is queued and written by one thread of its own, so a slow terminal holds up no caller. Both
// are bounded: a line is cut at 8 KiB (and says so), and when 8,192 lines wait, further ones are dropped and
// counted (`dropped()`, and a line that tells how many as soon as there is room). Never log content, keys or
// secrets.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

namespace todoke::log {

enum class Level { debug, info, warning, error };
enum class Format { human, json };

struct Field {
  std::string_view name;
  std::variant<std::int64_t, double, bool, std::string_view> value;

  Field(std::string_view n, std::string_view v) : name(n), value(v) {}
  Field(std::string_view n, const char* v) : name(n), value(std::string_view(v)) {}
  Field(std::string_view n, const std::string& v) : name(n), value(std::string_view(v)) {}
  Field(std::string_view n, bool v) : name(n), value(v) {}
  Field(std::string_view n, double v) : name(n), value(v) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Field(std::string_view n, T v) : name(n), value(static_cast<std::int64_t>(v)) {}
};

using Fields = std::initializer_list<Field>;

void configure(Level least, Format format);

// "debug", "info", "warning" or "error"; anything else is a programming error (configuration has checked it).
Level level_from(std::string_view name);

void write(Level level, std::string_view component, std::string_view message, Fields fields = {});

inline void debug(std::string_view component, std::string_view message, Fields fields = {}) {
  write(Level::debug, component, message, fields);
}
inline void info(std::string_view component, std::string_view message, Fields fields = {}) {
  write(Level::info, component, message, fields);
}
inline void warning(std::string_view component, std::string_view message, Fields fields = {}) {
  write(Level::warning, component, message, fields);
}
inline void error(std::string_view component, std::string_view message, Fields fields = {}) {
  write(Level::error, component, message, fields);
}

// Lines dropped since the start.
std::uint64_t dropped();

// Waits until everything queued so far is written. Called before the process ends.
void flush();
// The same, for at most `limit`: stderr may be blocked. False: the time was up.
bool flush(std::chrono::milliseconds limit);

// Sends every line to `sink` instead of stderr until it is destroyed; for tests. The sink is called on the
// writing thread.
class Capture {
 public:
  explicit Capture(std::function<void(std::string_view line)> sink);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
};

}  // namespace todoke::log

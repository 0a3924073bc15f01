#include "base/log.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <poll.h>
#include <pthread.h>
#include <stdexcept>
#include <thread>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/json_writer.hpp"
#include "base/timestamp.hpp"

namespace todoke::log {
namespace {

constexpr std::size_t kLineBytesMax = 8 * 1024;
constexpr std::size_t kQueueLinesMax = 8 * 1024;
constexpr std::string_view kCutMark = "…[cut]";

std::string_view name_of(Level level) {
  switch (level) {
    case Level::debug:
      return "debug";
    case Level::info:
      return "info";
    case Level::warning:
      return "warning";
    case Level::error:
      return "error";
  }
  return "error";
}

// `cut` keeps the line valid JSON: the longest field is cut, not the line.
std::string_view cut(std::string_view text) {
  if (text.size() <= kLineBytesMax) return text;
  return text.substr(0, kLineBytesMax);
}

std::string cut_marked(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  return std::string(text.substr(0, most)) + std::string(kCutMark);
}

std::string as_json(Level level, std::string_view component, std::string_view message, Fields fields,
                    std::size_t text_max) {
  JsonWriter json;
  json.begin_object();
  json.member("ts", format_timestamp(std::chrono::system_clock::now(), 3));
  json.member("level", name_of(level));
  json.member("component", component);
  json.member("msg", cut_marked(message, text_max));
  for (const auto& field : fields) {
    json.key(field.name);
    std::visit(
        [&](const auto& value) {
          if constexpr (std::same_as<std::decay_t<decltype(value)>, std::string_view>) {
            json.value(cut_marked(value, text_max));
          } else {
            json.value(value);
          }
        },
        field.value);
  }
  json.end_object();
  return std::move(json).text();
}

void append_human_value(std::string& line, const Field& field) {
  std::visit(
      [&](const auto& value) {
        if constexpr (std::same_as<std::decay_t<decltype(value)>, std::string_view>) {
          const bool plain = !value.empty() && value.find_first_of(" \t\r\n\"=") == std::string_view::npos;
          if (plain) {
            line += value;
          } else {
            append_json_string(line, value);
          }
        } else {
          line += fmt::format("{}", value);
        }
      },
      field.value);
}

std::string as_text(Level level, std::string_view component, std::string_view message, Fields fields) {
  auto line = fmt::format("{} {:<7} {}: {}", format_timestamp(std::chrono::system_clock::now(), 3),
                          name_of(level), component, message);
  for (const auto& field : fields) {
    line += fmt::format(" {}=", field.name);
    append_human_value(line, field);
  }
  for (auto& c : line) {
    // A control byte could command the reader's terminal.
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  if (line.size() > kLineBytesMax) line = std::string(cut(line)) + std::string(kCutMark);
  return line;
}

std::string render(Format format, Level level, std::string_view component, std::string_view message,
                   Fields fields) {
  if (format == Format::human) return as_text(level, component, message, fields);
  auto line = as_json(level, component, message, fields, kLineBytesMax);
  if (line.size() <= kLineBytesMax) return line;
  // Too long: every text gets an equal share, which keeps the line valid JSON.
  return as_json(level, component, message, fields, kLineBytesMax / (8 * (fields.size() + 1)));
}

// The queue and the thread that empties it.
class Writer {
 public:
  Writer() : thread_([this] { run(); }) {}
  ~Writer() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void push(std::string line) {
    const std::lock_guard lock(mutex_);
    if (queue_.size() >= kQueueLinesMax) {
      ++dropped_;
      ++dropped_untold_;
      return;
    }
    queue_.push_back(std::move(line));
    wake_.notify_one();
  }

  void flush() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return queue_.empty() && !busy_; });
  }
  bool flush(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    return idle_.wait_for(lock, limit, [&] { return queue_.empty() && !busy_; });
  }

  void set_sink(std::function<void(std::string_view)> sink) {
    flush();
    const std::lock_guard lock(mutex_);
    sink_ = std::move(sink);
  }

  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

  std::atomic<Level> least{Level::info};
  std::atomic<Format> format{Format::human};

 private:
  void run() {
    pthread_setname_np(pthread_self(), "log");
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      std::deque<std::string> lines;
      lines.swap(queue_);
      const auto untold = std::exchange(dropped_untold_, 0);
      if (untold > 0) {
        lines.push_back(
            render(format, Level::warning, "log", "lines dropped: the queue was full", {{"lines", untold}}));
      }
      busy_ = true;
      const auto sink = sink_;
      lock.unlock();
      write_lines(lines, sink);
      lock.lock();
      busy_ = false;
      if (queue_.empty()) idle_.notify_all();
    }
  }

  static void write_lines(const std::deque<std::string>& lines,
                          const std::function<void(std::string_view)>& sink) {
    if (sink) {
      for (const auto& line : lines) sink(line);
      return;
    }
    std::string block;
    for (const auto& line : lines) {
      block += line;
      block.push_back('\n');
    }
    std::string_view rest = block;
    while (!rest.empty()) {
      const auto n = ::write(STDERR_FILENO, rest.data(), rest.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) {  // somebody made the terminal non-blocking
        pollfd writable{STDERR_FILENO, POLLOUT, 0};
        ::poll(&writable, 1, -1);
        continue;
      }
      if (n <= 0) return;  // stderr is gone: there is nobody left to tell
      rest.remove_prefix(static_cast<std::size_t>(n));
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  std::deque<std::string> queue_;
  std::function<void(std::string_view)> sink_;
  bool stopping_ = false;
  bool busy_ = false;
  std::atomic<std::uint64_t> dropped_{0};
  std::uint64_t dropped_untold_ = 0;
  std::thread thread_;
};

Writer& writer() {
  static Writer instance;
  return instance;
}

}  // namespace

void configure(Level least, Format format) {
  writer().least = least;
  writer().format = format;
}

Level level_from(std::string_view name) {
  for (auto level : {Level::debug, Level::info, Level::warning, Level::error}) {
    if (name_of(level) == name) return level;
  }
  throw std::invalid_argument("no such log level: " + std::string(name));
}

void write(Level level, std::string_view component, std::string_view message, Fields fields) {
  auto& w = writer();
  if (level < w.least.load(std::memory_order_relaxed)) return;
  w.push(render(w.format, level, component, message, fields));
}

std::uint64_t dropped() {
  return writer().dropped();
}

void flush() {
  writer().flush();
}

bool flush(std::chrono::milliseconds limit) {
  return writer().flush(limit);
}

Capture::Capture(std::function<void(std::string_view)> sink) {
  writer().set_sink(std::move(sink));
}

Capture::~Capture() {
  writer().set_sink({});
}

}  // namespace todoke::log

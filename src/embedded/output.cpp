#include "embedded/output.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <exception>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <system_error>

namespace todoke::embedded {
namespace {

// The largest pipe that an unprivileged process may ask for by default (/proc/sys/fs/pipe-max-size).
constexpr int kPipeBytes = 1024 * 1024;
constexpr std::size_t kReadBytes = 16 * 1024;
constexpr std::string_view kCut = " …[cut]";

[[noreturn]] void throw_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

void add_flags(int fd, int flags) {
  const int before = ::fcntl(fd, F_GETFL);
  if (before < 0 || ::fcntl(fd, F_SETFL, before | flags) != 0) throw_errno("fcntl(F_SETFL)");
}

struct Severity {
  std::string_view name;
  std::optional<log::Level> level;  // none: belongs to the line before
};

// FATAL ends one connection and ERROR one statement, both at a client's request; PANIC is the server's own.
// These are no failure: a backend had not yet read its client's goodbye when the server was stopped.
constexpr std::array<std::string_view, 2> kEndedOnPurpose{
    "terminating connection due to administrator command", "could not send data to client: Broken pipe"};
constexpr std::array<Severity, 16> kSeverities{{
    {"DEBUG", log::Level::debug},
    {"DEBUG1", log::Level::debug},
    {"DEBUG2", log::Level::debug},
    {"LOG", log::Level::info},
    {"INFO", log::Level::info},
    {"NOTICE", log::Level::info},
    {"WARNING", log::Level::warning},
    {"ERROR", log::Level::error},
    {"FATAL", log::Level::error},
    {"PANIC", log::Level::error},
    {"DETAIL", std::nullopt},
    {"HINT", std::nullopt},
    {"CONTEXT", std::nullopt},
    {"STATEMENT", std::nullopt},
    {"QUERY", std::nullopt},
    {"LOCATION", std::nullopt},
}};

}  // namespace

void LineCutter::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    const auto piece = bytes.substr(0, end);
    const auto room = kOutputLineBytesMax - line_.size();
    line_.append(piece.substr(0, room));
    overlong_ = overlong_ || piece.size() > room;
    if (end == std::string_view::npos) return;
    end_line();
    bytes.remove_prefix(end + 1);
  }
}

void LineCutter::end_line() {
  const bool continues = line_.starts_with('\t') && !kept_.empty();
  if (!continues) release();
  if (kept_.size() + line_.size() < kOutputLineBytesMax) {
    kept_.append(continues ? "\n" : "").append(line_);
  } else if (kept_.empty()) {
    kept_ = std::move(line_);
  } else {
    overlong_ = true;
  }
  if (overlong_ && !kept_.ends_with(kCut)) kept_.append(kCut);
  line_.clear();
  overlong_ = false;
}

void LineCutter::release() {
  if (!kept_.empty()) on_line_(kept_);
  kept_.clear();
}

void LineCutter::finish() {
  end_line();
  release();
}

OutputPipe::OutputPipe(Overflow overflow, std::function<void(std::string_view line)> on_line)
    : cutter_(std::move(on_line)) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_errno("pipe2");
  reading_ = Fd(ends[0]);
  writing_ = Fd(ends[1]);
  wake_ = Fd(::eventfd(0, EFD_CLOEXEC));
  if (!wake_) throw_errno("eventfd");
  // Refused when the user's pipes hold too much already; the default of 64 KiB does as well then.
  ::fcntl(writing_.get(), F_SETPIPE_SZ, kPipeBytes);
  add_flags(reading_.get(), O_NONBLOCK);
  if (overflow == Overflow::drop) add_flags(writing_.get(), O_NONBLOCK);
  thread_ = std::thread([this] { read_lines(); });
}

OutputPipe::~OutputPipe() {
  finish();
}

void OutputPipe::finish() {
  if (!thread_.joinable()) return;
  writing_.reset();
  const std::uint64_t one = 1;
  if (::write(wake_.get(), &one, sizeof one) != static_cast<ssize_t>(sizeof one)) std::terminate();
  thread_.join();
  reading_.reset();
}

void OutputPipe::read_lines() {
  pthread_setname_np(pthread_self(), "postgres-log");
  std::array<pollfd, 2> watched{{{reading_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
  for (;;) {
    if (::poll(watched.data(), watched.size(), -1) < 0) continue;
    const bool finishing = watched[1].revents != 0;
    std::size_t budget = finishing ? kPipeBytes : kReadBytes;
    const bool more = read_some(budget);
    if (finishing) break;
    if (budget > 0) cutter_.release();  // the pipe is empty; Postgres writes a message in one piece
    if (!more) watched[0].fd = -1;      // all writers are gone; wait for finish()
  }
  cutter_.finish();
}

bool OutputPipe::read_some(std::size_t& budget) {
  std::array<char, kReadBytes> buffer;
  while (budget > 0) {
    const auto got = ::read(reading_.get(), buffer.data(), std::min(budget, buffer.size()));
    if (got == 0) return false;
    if (got < 0) return true;  // empty for now
    cutter_.feed({buffer.data(), static_cast<std::size_t>(got)});
    budget -= static_cast<std::size_t>(got);
  }
  return true;
}

PostgresLine parse_postgres_line(std::string_view line, log::Level level_before) {
  // The severity is the first word that a colon and two spaces follow; an operator's own prefix may stand
  // before it.
  for (auto colon = line.find(":  "); colon != std::string_view::npos; colon = line.find(":  ", colon + 1)) {
    const auto space = line.rfind(' ', colon);
    const auto start = space == std::string_view::npos ? 0 : space + 1;
    const auto word = line.substr(start, colon - start);
    for (const auto& severity : kSeverities) {
      if (severity.name != word) continue;
      const auto text = line.substr(colon + 3);
      if (std::find(kEndedOnPurpose.begin(), kEndedOnPurpose.end(), text) != kEndedOnPurpose.end())
        return {log::Level::debug, severity.name, text};
      if (severity.level) return {*severity.level, severity.name, text};
      return {level_before, severity.name, line.substr(start)};
    }
  }
  return {level_before, {}, line};
}

}  // namespace todoke::embedded

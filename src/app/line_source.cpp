#include "app/line_source.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace todoke::app {
namespace {

constexpr std::size_t kReadBytes = 64 * 1024;

std::string reason_of(int error) {
  return std::generic_category().message(error);
}

Fd opened_input(const std::string& path) {
  if (path == "-") return Fd();
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const int error = errno;
  if (!fd) throw UserError(fmt::format("{} can't be read: {}", path, reason_of(error)));
  return fd;
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

LineSource::LineSource(const std::string& path)
    : name_(path == "-" ? "stdin" : path), own_(opened_input(path)), fd_(own_ ? own_.get() : STDIN_FILENO) {
  struct stat info{};
  if (fstat(fd_, &info) == 0 && S_ISREG(info.st_mode))
    bytes_total_ = static_cast<std::uint64_t>(info.st_size);
}

std::vector<LineSource::Line> LineSource::read(std::size_t lines_max, std::chrono::milliseconds wait) {
  const auto until = std::chrono::steady_clock::now() + wait;
  std::vector<Line> lines;
  while (!ended_ && failure_.empty()) {
    cut_lines(lines, lines_max);
    if (lines.size() >= lines_max) break;
    if (decode()) continue;
    if (file_ended_) {
      finish(lines);
      break;
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (!fill(std::max(left, std::chrono::milliseconds(0)))) break;
  }
  if (!failure_.empty() && lines.empty()) throw UserError(failure_);
  return lines;
}

bool LineSource::fill(std::chrono::milliseconds wait) {
  pollfd waiting{fd_, POLLIN, 0};
  const int ready = poll(&waiting, 1, static_cast<int>(wait.count()));
  if (ready == 0 || (ready < 0 && errno == EINTR)) return false;
  std::array<char, kReadBytes> piece{};
  const auto got = ::read(fd_, piece.data(), piece.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return false;
  if (got < 0) {
    failure_ = fmt::format("{} can't be read after line {}: {}", name_, number_, reason_of(errno));
    return false;
  }
  if (got == 0) file_ended_ = true;
  packed_.append(piece.data(), static_cast<std::size_t>(got));
  bytes_read_ += static_cast<std::uint64_t>(got);
  return true;
}

// One step; false: more bytes are needed, or there are none any more.
bool LineSource::decode() {
  if (!decoder_) {
    if (packed_.size() < kMagicBytes && !file_ended_) return false;
    decoder_ = make_decoder(packed_);
  }
  text_.erase(0, std::exchange(cut_at_, 0));
  const auto before = text_.size();
  const auto taken = decoder_->step(packed_, text_);
  if (!taken) {
    failure_ = fmt::format("{} can't be unpacked after line {}: {}", name_, number_, taken.error().message);
    return true;
  }
  packed_.erase(0, *taken);
  return *taken > 0 || text_.size() > before;
}

void LineSource::cut_lines(std::vector<Line>& lines, std::size_t lines_max) {
  while (lines.size() < lines_max) {
    const auto end = text_.find('\n', cut_at_);
    if (end == std::string::npos) break;
    end_line(std::string_view(text_).substr(cut_at_, end - cut_at_), lines);
    cut_at_ = end + 1;
  }
  if (lines.size() >= lines_max) return;
  // What is left is the beginning of a line.
  const auto rest = std::string_view(text_).substr(cut_at_);
  too_long_ = too_long_ || line_.size() + rest.size() > kLineBytesMax;
  if (too_long_) {
    line_.clear();
  } else {
    line_ += rest;
  }
  cut_at_ = text_.size();
}

void LineSource::end_line(std::string_view rest, std::vector<Line>& lines) {
  ++number_;
  const bool too_long = std::exchange(too_long_, false) || line_.size() + rest.size() > kLineBytesMax;
  if (too_long) {
    line_.clear();
    lines.push_back({number_, {}, true});
    return;
  }
  line_ += rest;
  auto text = std::exchange(line_, {});
  if (!text.empty() && text.back() == '\r') text.pop_back();
  if (!is_blank(text)) lines.push_back({number_, std::move(text), false});
}

void LineSource::finish(std::vector<Line>& lines) {
  if (decoder_ && !decoder_->may_end() && bytes_read_ > 0) {
    failure_ = fmt::format("{} is cut off after line {}: its compressed stream has no end", name_, number_);
    return;
  }
  ended_ = true;
  if (!line_.empty() || too_long_) end_line({}, lines);
}

}  // namespace todoke::app

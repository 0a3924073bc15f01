#include "relay/policy_program.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <stdexcept>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "base/fd.hpp"
#include "base/loops.hpp"
#include "embedded/child.hpp"

namespace todoke::relay {
namespace {

constexpr std::chrono::seconds kEndMax(2);
constexpr std::size_t kReadBytes = 16 * 1024;

struct Pipe {
  Fd read;
  Fd write;
};

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe2");
  return {Fd(ends[0]), Fd(ends[1])};
}

void close(asio::posix::stream_descriptor& descriptor) {
  boost::system::error_code ignored;  // it is gone in any case
  descriptor.close(ignored);
}

}  // namespace

struct PolicyProgram::Process {
  explicit Process(const Executor& executor) : input(executor), output(executor) {}

  asio::posix::stream_descriptor input;   // its stdin
  asio::posix::stream_descriptor output;  // its stdout
  std::unique_ptr<embedded::Child> child;
};

PolicyProgram::PolicyProgram(Executor executor, std::vector<std::string> command, std::size_t line_bytes_max,
                             OnLine on_line)
    : executor_(std::move(executor)),
      command_(std::move(command)),
      line_bytes_max_(line_bytes_max),
      on_line_(std::move(on_line)),
      work_(executor_) {}

PolicyProgram::~PolicyProgram() = default;

void PolicyProgram::send(std::string_view lines) {
  unsent_ += lines;
  work_.set();
}

Task<void> PolicyProgram::run(Signal& stop) {
  auto to_program = make_pipe();
  auto from_program = make_pipe();
  process_ = std::make_unique<Process>(executor_);
  embedded::Program program{.argv = command_,
                            .output_fd = from_program.write.get(),
                            .input_fd = to_program.read.get(),
                            .error_fd = STDERR_FILENO};
  process_->child = co_await embedded::Child::spawn(std::move(program), [] {});
  process_->input.assign(to_program.write.release());
  process_->output.assign(from_program.read.release());
  to_program = {};
  from_program = {};
  Loops loops(executor_, "policy", [&stop] { stop.set(); });
  loops.launch("reader", read_lines(stop));
  loops.launch("writer", write_lines(stop));
  co_await stop.wait();
  work_.set();
  close(process_->input);
  co_await process_->child->wait_for(kEndMax);
  close(process_->output);
  co_await loops.join();
}

Task<void> PolicyProgram::read_lines(const Signal& stop) {
  std::string text;
  std::array<char, kReadBytes> buffer;
  while (!stop.is_set()) {
    boost::system::error_code error;
    const auto count = co_await process_->output.async_read_some(
        asio::buffer(buffer), asio::redirect_error(asio::use_awaitable, error));
    if (error && !stop.is_set()) {
      co_await process_->child->wait_for(kEndMax);
      throw std::runtime_error("relay.policy_command: " + process_->child->how_it_ended());
    }
    text.append(buffer.data(), count);
    split(text);
  }
}

// Leaves what is no whole line yet.
void PolicyProgram::split(std::string& text) const {
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    if (end > begin) on_line_(std::string_view(text).substr(begin, end - begin));
  }
  text.erase(0, begin);
  if (text.size() > line_bytes_max_) throw std::runtime_error("relay.policy_command: a line is too long");
}

Task<void> PolicyProgram::write_lines(const Signal& stop) {
  while (!stop.is_set()) {
    if (unsent_.empty()) {
      work_.reset();
      co_await work_.wait();
      continue;
    }
    const auto lines = std::exchange(unsent_, {});
    boost::system::error_code error;
    co_await asio::async_write(process_->input, asio::buffer(lines),
                               asio::redirect_error(asio::use_awaitable, error));
    // A program that no longer reads has ended, and the reader says so; or it goes on answering.
    if (error) co_return;
  }
}

}  // namespace todoke::relay

#include "pg/process.hpp"

#include <cerrno>
#include <cstring>
#include <signal.h>
#include <sys/wait.h>
#include <system_error>
#include <utility>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/error.hpp"
#include "base/log.hpp"
#include "pg/process_pidfd.hpp"

namespace todoke::pg {

struct Process::State {
  State(const Executor& executor, pid_t p, int fd, std::function<void()> callback)
      : pid(p), pidfd(executor, fd), end(executor), on_end(std::move(callback)) {}

  // Null result of waitid: it still runs. ECHILD: somebody else reaped it; then only the end itself is known.
  bool reap(int flags) {
    siginfo_t info{};
    int result = 0;
    while ((result = ::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd.native_handle()), &info,
                              WEXITED | flags)) != 0 &&
           errno == EINTR) {
    }
    if (result == 0 && info.si_pid == 0) return false;
    if (result == 0) {
      code = info.si_code;
      status = info.si_status;
    }
    return true;
  }

  pid_t pid;
  asio::posix::stream_descriptor pidfd;
  Signal end;
  std::function<void()> on_end;
  int code = 0;  // CLD_EXITED, CLD_KILLED, CLD_DUMPED; 0: unknown
  int status = 0;
  bool abandoned = false;
};

Process::Process(std::shared_ptr<State> state) : state_(std::move(state)) {}

Process::~Process() {
  if (state_->end.is_set()) return;
  state_->abandoned = true;
  send(SIGKILL);
  state_->reap(0);
  boost::system::error_code closing;
  state_->pidfd.close(closing);
}

Task<std::unique_ptr<Process>> Process::spawn(ProcessSpec spec, std::function<void()> on_end) {
  const auto executor = co_await asio::this_coro::executor;
  pid_t pid = 0;
  co_await run_blocking([&spec, &pid] { pid = fork_and_exec(spec); });
  // The child is not reaped before we do it, so its pid can't have become another's.
  const int pidfd = open_pidfd(pid);
  if (pidfd < 0) {
    const int error = errno;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    throw std::system_error(error, std::generic_category(), "pidfd_open");
  }
  auto state = std::make_shared<State>(executor, pid, pidfd, std::move(on_end));
  auto process = std::unique_ptr<Process>(new Process(state));
  todoke::spawn(executor, watch(std::move(state)), [](const std::exception_ptr& error) {
    if (error) log::error("process", "watching a process failed", {{"error", describe(error)}});
  });
  co_return process;
}

Task<void> Process::watch(std::shared_ptr<State> state) {
  for (;;) {
    boost::system::error_code error;
    co_await state->pidfd.async_wait(asio::posix::stream_descriptor::wait_read,
                                     asio::redirect_error(asio::use_awaitable, error));
    if (state->abandoned) co_return;
    if (error) throw boost::system::system_error(error, "pidfd");
    if (state->reap(WNOHANG)) break;
  }
  state->end.set();
  const auto on_end = std::exchange(state->on_end, nullptr);
  if (on_end) on_end();
}

pid_t Process::pid() const {
  return state_->pid;
}

bool Process::ended() const {
  return state_->end.is_set();
}

bool Process::ended_well() const {
  return ended() && state_->code == CLD_EXITED && state_->status == 0;
}

std::string Process::how_it_ended() const {
  if (!ended()) return "still runs";
  if (state_->code == CLD_EXITED) return "exit code " + std::to_string(state_->status);
  if (state_->code == 0) return "ended, reaped by somebody else";
  return "signal " + std::to_string(state_->status) + " (" + ::sigdescr_np(state_->status) + ")";
}

void Process::send(int signal_number) {
  if (state_->end.is_set()) return;
  // Fails only when the process has ended and is not reaped yet.
  send_to_pidfd(state_->pidfd.native_handle(), signal_number);
}

Task<bool> Process::wait_for(std::chrono::nanoseconds limit) {
  auto state = state_;
  const bool ended = co_await state->end.wait_for(limit);
  co_return ended;
}

}  // namespace todoke::pg

#include "embedded/child.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdexcept>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"

namespace todoke::embedded {
namespace {

// Of util-linux, which every Debian has.
constexpr const char* kSetpriv = "/usr/bin/setpriv";

void check(int error, const char* what) {
  if (error != 0) throw std::system_error(error, std::generic_category(), what);
}

// PATH, TZ and LD_LIBRARY_PATH of todoke's own environment, and a fixed locale, so that messages are in
// English. No PG… variables (they would change what Postgres does) and no secrets of todoke.
std::vector<std::string> environment() {
  std::vector<std::string> result{"LC_ALL=C.UTF-8"};
  for (const char* name : {"PATH", "TZ", "LD_LIBRARY_PATH"}) {
    if (const char* value = std::getenv(name)) result.push_back(std::string(name) + "=" + value);
  }
  return result;
}

std::vector<std::string> with_setpriv(const Program& program) {
  std::vector<std::string> argv{kSetpriv, "--pdeathsig=INT"};
  if (program.identity) {
    argv.insert(argv.end(), {fmt::format("--reuid={}", program.identity->uid),
                             fmt::format("--regid={}", program.identity->gid), "--init-groups"});
  }
  argv.emplace_back("--");
  argv.insert(argv.end(), program.argv.begin(), program.argv.end());
  return argv;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (auto& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

class SpawnAttributes {
 public:
  SpawnAttributes() {
    check(::posix_spawnattr_init(&value_), "posix_spawnattr_init");
    sigset_t none;
    sigset_t all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&value_, &none);
    ::posix_spawnattr_setsigdefault(&value_, &all);
    ::posix_spawnattr_setflags(&value_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnAttributes() { ::posix_spawnattr_destroy(&value_); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  [[nodiscard]] const posix_spawnattr_t* get() const { return &value_; }

 private:
  posix_spawnattr_t value_{};
};

// The output first: its descriptor may be one that the others replace.
class SpawnDescriptors {
 public:
  explicit SpawnDescriptors(const Program& program) {
    check(::posix_spawn_file_actions_init(&value_), "posix_spawn_file_actions_init");
    duplicate(program.output_fd, STDOUT_FILENO);
    duplicate(program.error_fd >= 0 ? program.error_fd : program.output_fd, STDERR_FILENO);
    if (program.input_fd >= 0) {
      duplicate(program.input_fd, STDIN_FILENO);
    } else {
      check(::posix_spawn_file_actions_addopen(&value_, STDIN_FILENO, "/dev/null", O_RDONLY, 0), "/dev/null");
    }
    int next = kFirstFolderFd;
    for (const int fd : program.folders) duplicate(fd, next++);
    check(::posix_spawn_file_actions_addclosefrom_np(&value_, next), "closefrom");
    check(::posix_spawn_file_actions_addchdir_np(&value_, "/"), "chdir");
  }
  ~SpawnDescriptors() { ::posix_spawn_file_actions_destroy(&value_); }
  SpawnDescriptors(const SpawnDescriptors&) = delete;
  SpawnDescriptors& operator=(const SpawnDescriptors&) = delete;
  [[nodiscard]] const posix_spawn_file_actions_t* get() const { return &value_; }

 private:
  void duplicate(int from, int to) { check(::posix_spawn_file_actions_adddup2(&value_, from, to), "dup2"); }
  posix_spawn_file_actions_t value_{};
};

}  // namespace

pid_t spawn_program(const Program& program) {
  if (program.argv.empty() || program.output_fd < 0)
    throw std::logic_error("spawn_program: no program or no output");
  auto arguments = with_setpriv(program);
  auto variables = environment();
  const SpawnAttributes attributes;
  const SpawnDescriptors descriptors(program);
  pid_t pid = 0;
  check(::posix_spawn(&pid, kSetpriv, descriptors.get(), attributes.get(), pointers(arguments).data(),
                      pointers(variables).data()),
        kSetpriv);
  return pid;
}

bool run_program(const Program& program) {
  const auto pid = spawn_program(program);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// By system call: the <sys/pidfd.h> of glibc 2.36 can't be used from C++ (its functions are not declared
// extern "C").
Fd open_pidfd(pid_t pid) {
  return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

bool send_to_pidfd(int pidfd, int signal_number) {
  return ::syscall(SYS_pidfd_send_signal, pidfd, signal_number, nullptr, 0) == 0;
}

struct Child::State {
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

Child::Child(std::shared_ptr<State> state) : state_(std::move(state)) {}

Child::~Child() {
  if (state_->end.is_set()) return;
  state_->abandoned = true;
  send(SIGKILL);
  state_->reap(0);
  boost::system::error_code closing;
  state_->pidfd.close(closing);
}

Task<std::unique_ptr<Child>> Child::spawn(Program program, std::function<void()> on_end) {
  const auto executor = co_await asio::this_coro::executor;
  // Here and not in a thread of run_blocking, whose end would send the child its signal.
  const auto pid = spawn_program(program);
  // The child is not reaped before we do it, so its pid can't have become another's.
  auto pidfd = open_pidfd(pid);
  if (!pidfd) {
    const int error = errno;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    throw std::system_error(error, std::generic_category(), "pidfd_open");
  }
  auto state = std::make_shared<State>(executor, pid, pidfd.release(), std::move(on_end));
  auto child = std::unique_ptr<Child>(new Child(state));
  todoke::spawn(executor, watch(std::move(state)), [](const std::exception_ptr& error) {
    if (error) log::error("child", "watching a child failed", {{"error", describe(error)}});
  });
  co_return child;
}

Task<void> Child::watch(std::shared_ptr<State> state) {
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

pid_t Child::pid() const {
  return state_->pid;
}

bool Child::ended() const {
  return state_->end.is_set();
}

bool Child::ended_well() const {
  return ended() && state_->code == CLD_EXITED && state_->status == 0;
}

std::string Child::how_it_ended() const {
  if (!ended()) return "still runs";
  if (state_->code == CLD_EXITED) return "exit code " + std::to_string(state_->status);
  if (state_->code == 0) return "ended, reaped by somebody else";
  return "signal " + std::to_string(state_->status) + " (" + ::sigdescr_np(state_->status) + ")";
}

void Child::send(int signal_number) {
  if (state_->end.is_set()) return;
  // Fails only when the process has ended and is not reaped yet.
  send_to_pidfd(state_->pidfd.native_handle(), signal_number);
}

Task<bool> Child::wait_for(std::chrono::nanoseconds limit) {
  auto state = state_;
  const bool ended = co_await state->end.wait_for(limit);
  co_return ended;
}

}  // namespace todoke::embedded

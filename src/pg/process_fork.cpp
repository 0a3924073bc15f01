#include "pg/process_fork.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <fcntl.h>
#include <functional>
#include <future>
#include <linux/close_range.h>
#include <mutex>
#include <pthread.h>
#include <signal.h>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include "pg/process_fd.hpp"

namespace todoke::pg {
namespace {

// The thread that forks. It ends with the process and not before: its end would send SIGINT to every child.
class Forker {
 public:
  Forker() : thread_([this] { loop(); }) {}
  ~Forker() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  Forker(const Forker&) = delete;
  Forker& operator=(const Forker&) = delete;

  int run(std::function<int()> work) {
    std::packaged_task<int()> task(std::move(work));
    auto result = task.get_future();
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(task));
    }
    wake_.notify_all();
    return result.get();
  }

 private:
  void loop() {
    pthread_setname_np(pthread_self(), "forker");
    // No handler of todoke may run in a child between fork and exec: the child starts with everything
    // blocked.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return ending_ || !queue_.empty(); });
      if (queue_.empty()) return;
      auto task = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::packaged_task<int()>>
      queue_;  // each caller waits for its task, so there are as many as callers
  bool ending_ = false;
  std::thread thread_;
};

Forker& forker() {
  static Forker instance;
  return instance;
}

enum class Step : int { session, groups, gid, uid, death_signal, folder, descriptors, exec };

const char* name_of(Step step) {
  switch (step) {
    case Step::session:
      return "setsid";
    case Step::groups:
      return "setgroups";
    case Step::gid:
      return "setresgid";
    case Step::uid:
      return "setresuid";
    case Step::death_signal:
      return "prctl(PR_SET_PDEATHSIG)";
    case Step::folder:
      return "chdir /";
    case Step::descriptors:
      return "setting up the descriptors";
    case Step::exec:
      return "exec";
  }
  return "unknown step";
}

struct Failure {
  Step step;
  int error;
};

// Plain pointers and numbers, made before the fork: the child must not allocate.
struct Plan {
  const Identity* identity = nullptr;
  pid_t parent = 0;
  std::vector<char*> argv;
  std::vector<char*> environment;
  std::vector<int> keep;  // ascending; the last step's descriptor `report` among them
  int null_fd = -1;
  int output_fd = -1;
  int report = -1;
};

[[noreturn]] void give_up(int report, Step step) {
  const Failure failure{step, errno};
  // The parent takes a missing report together with the exit code as a failure too.
  [[maybe_unused]] const auto written = ::write(report, &failure, sizeof failure);
  ::_exit(127);
}

// The raw calls: glibc's own wrappers talk to all threads of the process, and in the child there is only this
// one.
bool become(const Identity& identity, Step& step) {
  step = Step::groups;
  if (::syscall(SYS_setgroups, identity.groups.size(), identity.groups.data()) != 0) return false;
  step = Step::gid;
  if (::syscall(SYS_setresgid, identity.gid, identity.gid, identity.gid) != 0) return false;
  step = Step::uid;
  return ::syscall(SYS_setresuid, identity.uid, identity.uid, identity.uid) == 0;
}

bool set_descriptors(const Plan& plan) {
  if (::dup2(plan.null_fd, STDIN_FILENO) < 0) return false;
  if (::dup2(plan.output_fd, STDOUT_FILENO) < 0 || ::dup2(plan.output_fd, STDERR_FILENO) < 0) return false;
  unsigned from = STDERR_FILENO + 1;
  for (const int fd : plan.keep) {
    const auto kept = static_cast<unsigned>(fd);
    if (kept > from && ::close_range(from, kept - 1, 0) != 0) return false;
    if (fd != plan.report && ::fcntl(fd, F_SETFD, 0) != 0) return false;
    from = kept + 1;
  }
  return ::close_range(from, UINT_MAX, 0) == 0;
}

[[noreturn]] void child(const Plan& plan) {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &action, nullptr);
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &action, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);

  if (::setsid() < 0) give_up(plan.report, Step::session);
  if (plan.identity != nullptr) {
    Step step{};
    if (!become(*plan.identity, step)) give_up(plan.report, step);
  }
  // A change of the uid clears the death signal, so it comes after; and todoke may have died before it was
  // set.
  if (::prctl(PR_SET_PDEATHSIG, SIGINT) != 0) give_up(plan.report, Step::death_signal);
  if (::getppid() != plan.parent) ::_exit(127);
  ::umask(077);
  if (::chdir("/") != 0) give_up(plan.report, Step::folder);
  if (!set_descriptors(plan)) give_up(plan.report, Step::descriptors);
  ::execve(plan.argv[0], plan.argv.data(), plan.environment.data());
  give_up(plan.report, Step::exec);
}

[[noreturn]] void throw_errno(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

// Above the standard descriptors, which the child replaces.
Fd above_standard(int fd) {
  Fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!copy) throw_errno(errno, "fcntl(F_DUPFD_CLOEXEC)");
  return copy;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (const auto& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

int wait_for_exit(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

pid_t fork_and_exec(const ProcessSpec& spec) {
  if (spec.argv.empty() || spec.output_fd < 0)
    throw std::logic_error("fork_and_exec: no program or no output");
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_errno(errno, "pipe2");
  const Fd reading(ends[0]);
  Fd writing(ends[1]);
  Fd report = above_standard(writing.get());
  writing.reset();
  const Fd null_low(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null_low) throw_errno(errno, "/dev/null");
  const Fd null_fd = above_standard(null_low.get());
  const Fd output = above_standard(spec.output_fd);

  Plan plan;
  plan.identity = spec.identity ? &*spec.identity : nullptr;
  plan.parent = ::getpid();
  plan.argv = pointers(spec.argv);
  plan.environment = pointers(spec.environment);
  plan.keep = spec.keep_fds;
  plan.keep.push_back(report.get());
  std::sort(plan.keep.begin(), plan.keep.end());
  if (plan.keep.front() <= STDERR_FILENO)
    throw std::logic_error("fork_and_exec: keep_fds holds a standard descriptor");
  plan.null_fd = null_fd.get();
  plan.output_fd = output.get();
  plan.report = report.get();

  const int forked = forker().run([&plan]() -> int {
    const pid_t pid = ::fork();
    if (pid == 0) child(plan);
    return pid < 0 ? -errno : pid;
  });
  if (forked < 0) throw_errno(-forked, "fork");
  report.reset();

  // The child's end closes at exec: end of file means that the program runs (or that the child is gone, which
  // shows later).
  Failure failure{};
  ssize_t got = 0;
  while ((got = ::read(reading.get(), &failure, sizeof failure)) < 0 && errno == EINTR) {
  }
  if (got == static_cast<ssize_t>(sizeof failure)) {
    wait_for_exit(forked);
    throw_errno(failure.error, "can't run " + spec.argv.front() +
                                   (spec.identity ? " as user " + spec.identity->name : std::string()) +
                                   ": " + name_of(failure.step));
  }
  return forked;
}

bool can_reach(const std::optional<Identity>& identity, const std::vector<std::string>& folders) {
  const auto paths = pointers(folders);
  const int forked = forker().run([&identity, &paths]() -> int {
    const pid_t pid = ::fork();
    if (pid != 0) return pid < 0 ? -errno : pid;
    Step step{};
    if (identity && !become(*identity, step)) ::_exit(2);
    for (const char* path : paths) {
      if (path != nullptr && ::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) < 0) ::_exit(1);
    }
    ::_exit(0);
  });
  if (forked < 0) throw_errno(-forked, "fork");
  const int status = wait_for_exit(forked);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::vector<std::string> child_environment() {
  std::vector<std::string> result{"LC_ALL=C.UTF-8"};
  for (const char* name : {"PATH", "TZ", "LD_LIBRARY_PATH"}) {
    if (const char* value = std::getenv(name)) result.push_back(std::string(name) + "=" + value);
  }
  return result;
}

}  // namespace todoke::pg

#include "kept.hpp"

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace todoke::test {
namespace {

// One that can't start (the database is away) does not take the processor from who makes it come back.
constexpr std::chrono::milliseconds kStartPause(50);

}  // namespace

Kept::Kept(std::vector<std::string> command) : command_(std::move(command)), thread_([this] { keep(); }) {}

bool Kept::start() {
  const std::lock_guard lock(mutex_);
  if (ends_) return false;
  auto words = command_;
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
  }
  const int error = posix_spawnp(&pid_, argv[0], &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) throw std::system_error(error, std::generic_category(), argv[0]);
  ++starts_;
  return true;
}

void Kept::keep() {
  while (start()) {
    // Without reaping it: until then nobody else gets its pid.
    siginfo_t info{};
    while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
    {
      const std::lock_guard lock(mutex_);
      ::waitpid(std::exchange(pid_, 0), nullptr, 0);
      if (ends_) return;
    }
    std::this_thread::sleep_for(kStartPause);
  }
}

void Kept::signal(int number) {
  const std::lock_guard lock(mutex_);
  if (pid_ != 0) ::kill(pid_, number);
}

void Kept::end() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  signal(SIGCONT);
  signal(SIGTERM);
  if (thread_.joinable()) thread_.join();
}

}  // namespace todoke::test

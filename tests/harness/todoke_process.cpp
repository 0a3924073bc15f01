#include "harness/todoke_process.hpp"

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <grp.h>
#include <mutex>
#include <poll.h>
#include <pwd.h>
#include <stdexcept>
#include <sys/stat.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include "harness/metric.hpp"

namespace todoke::test {
namespace {

void check(bool ok, const char* what) {
  if (!ok) throw std::system_error(errno, std::generic_category(), what);
}

std::vector<std::string> environment_with(const std::vector<std::string>& extra) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const bool ours =
        text.starts_with("TODOKE_") || text.starts_with("DATABASE_URL") || text.starts_with("PG");
    if (!ours) entries.push_back(text);
  }
  entries.insert(entries.end(), extra.begin(), extra.end());
  return entries;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (auto& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

TempFolder::TempFolder() {
  std::string pattern = "/tmp/todoke-e2e-XXXXXX";
  check(mkdtemp(pattern.data()) != nullptr, "mkdtemp");
  path_ = pattern;
  // A node that root starts becomes another user, who passes through.
  check(chmod(path_.c_str(), 0711) == 0, "chmod");
}

TempFolder::~TempFolder() {
  std::error_code ignored;  // a process that a failed test left behind may still write there
  std::filesystem::remove_all(path_, ignored);
}

// Two threads read what the child writes; everybody who waits is woken by each piece.
struct ChildProcess::State {
  pid_t pid = -1;
  int fds[2] = {-1, -1};
  std::thread readers[2];
  std::mutex mutex;
  std::condition_variable changed;
  std::string output[2];
  int open = 2;
  std::optional<int> status;

  void read(int which) {
    char buffer[4096];
    while (true) {
      const auto n = ::read(fds[which], buffer, sizeof buffer);
      if (n < 0 && errno == EINTR) continue;
      const std::lock_guard lock(mutex);
      if (n <= 0) {
        --open;
        changed.notify_all();
        return;
      }
      output[which].append(buffer, static_cast<std::size_t>(n));
      changed.notify_all();
    }
  }
};

ChildProcess::ChildProcess(const std::vector<std::string>& command,
                           const std::vector<std::string>& extra_environment, const std::string& user)
    : state_(std::make_unique<State>()) {
  auto words = command;
  auto environment = environment_with(extra_environment);
  const passwd* identity = nullptr;
  if (!user.empty()) {
    identity = getpwnam(user.c_str());
    if (identity == nullptr) throw std::runtime_error("no such user: " + user);
    environment.emplace_back("HOME=/tmp");
  }
  const auto argv = pointers(words);
  const auto envp = pointers(environment);
  int pipes[2][2];
  for (auto& pipe : pipes) check(pipe2(pipe, O_CLOEXEC) == 0, "pipe2");
  state_->pid = fork();
  check(state_->pid >= 0, "fork");
  if (state_->pid == 0) {
    dup2(pipes[0][1], STDOUT_FILENO);
    dup2(pipes[1][1], STDERR_FILENO);
    if (identity != nullptr &&
        (setgroups(0, nullptr) != 0 || setgid(identity->pw_gid) != 0 || setuid(identity->pw_uid) != 0)) {
      _exit(126);
    }
    execvpe(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  for (int i = 0; i < 2; ++i) {
    ::close(pipes[i][1]);
    state_->fds[i] = pipes[i][0];
    state_->readers[i] = std::thread([state = state_.get(), i] { state->read(i); });
  }
}

ChildProcess::~ChildProcess() {
  if (!state_->status) {
    ::kill(state_->pid, SIGKILL);
    ::waitpid(state_->pid, nullptr, 0);
  }
  for (auto& reader : state_->readers) reader.join();
  for (const int fd : state_->fds) ::close(fd);
}

pid_t ChildProcess::pid() const {
  return state_->pid;
}

void ChildProcess::kill(int signal) const {
  check(::kill(state_->pid, signal) == 0, "kill");
}

void ChildProcess::wait_for_output(const std::string& text) {
  std::unique_lock lock(state_->mutex);
  const auto seen = [&] {
    return state_->output[0].find(text) != std::string::npos ||
           state_->output[1].find(text) != std::string::npos;
  };
  state_->changed.wait_for(lock, kPatience, [&] { return seen() || state_->open == 0; });
  if (!seen()) {
    throw std::runtime_error("'" + text + "' did not come. stdout:\n" + state_->output[0] + "\nstderr:\n" +
                             state_->output[1]);
  }
}

bool ChildProcess::has_ended() const {
  if (state_->status) return true;
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(state_->pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == state_->pid;
}

std::string ChildProcess::out() const {
  const std::lock_guard lock(state_->mutex);
  return state_->output[0];
}

std::string ChildProcess::err() const {
  const std::lock_guard lock(state_->mutex);
  return state_->output[1];
}

Exit ChildProcess::wait() {
  if (!state_->status) {
    std::optional<int> status;
    wait_until("the end of pid " + std::to_string(state_->pid), [&] {
      int value = 0;
      if (::waitpid(state_->pid, &value, WNOHANG) != state_->pid) return false;
      status = value;
      return true;
    });
    state_->status = status;
  }
  {  // what it wrote last may still be on its way through the pipe
    std::unique_lock lock(state_->mutex);
    state_->changed.wait_for(lock, kPatience, [&] { return state_->open == 0; });
  }
  const int status = *state_->status;
  Exit exit;
  if (WIFEXITED(status)) exit.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) exit.signal = WTERMSIG(status);
  exit.out = out();
  exit.err = err();
  return exit;
}

Exit run_command(const std::vector<std::string>& command, const std::vector<std::string>& extra_environment) {
  ChildProcess child(command, extra_environment);
  return child.wait();
}

std::string todoke_binary() {
  const char* other = std::getenv("TODOKE_BINARY");
  return other == nullptr ? TODOKE_BINARY : other;
}

namespace {

std::vector<std::string> node_command(std::vector<std::string> command, const std::filesystem::path& data_dir,
                                      const std::vector<std::string>& more) {
  command.insert(command.begin(), todoke_binary());
  command.insert(command.end(), {"--data_dir", data_dir.string(), "--server.listen", "127.0.0.1:0",
                                 "--server.internal_listen", "127.0.0.1:0"});
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

// Of a file with lines of name=value; nothing while it does not stand there.
std::optional<std::string> noted(const std::filesystem::path& file, const std::string& name) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + "=")) return line.substr(name.size() + 1);
  }
  return std::nullopt;
}

// What a node says of itself is among the events that it stores: a test that counts them wants none.
std::vector<std::string> without_bootstrap(std::vector<std::string> environment) {
  const bool is_set = std::any_of(environment.begin(), environment.end(), [](const auto& entry) {
    return entry.starts_with("TODOKE_BOOTSTRAP_ENABLED=");
  });
  if (!is_set) environment.emplace_back("TODOKE_BOOTSTRAP_ENABLED=off");
  return environment;
}

}  // namespace

NodeProcess::NodeProcess(std::vector<std::string> command, const std::filesystem::path& data_dir,
                         const std::vector<std::string>& more_arguments,
                         std::vector<std::string> extra_environment, const std::string& user)
    : own_folder_(data_dir.empty() ? std::make_unique<TempFolder>() : nullptr),
      data_dir_(own_folder_ ? own_folder_->path() : data_dir),
      environment_(without_bootstrap(std::move(extra_environment))),
      says_ready_(command[0] == "up" ? "ready after" : R"("component":"node","msg":"ready")"),
      process_(node_command(std::move(command), data_dir_, more_arguments), environment_, user) {}

void NodeProcess::wait_ready() {
  process_.wait_for_output(says_ready_);
  learn_addresses();
}

// A node notes its addresses for `todoke doctor` while it runs (app/instance_file.hpp).
void NodeProcess::learn_addresses() {
  if (!public_address_.empty()) return;
  const auto file = data_dir_ / "instances" / std::to_string(process_.pid());
  wait_until("the addresses of a node", [&] {
    const auto outside = noted(file, "public");
    if (!outside && process_.has_ended()) throw std::runtime_error("the node ended: " + process_.err());
    if (!outside) return false;
    public_address_ = *outside;
    internal_address_ = noted(file, "internal").value_or("");
    return true;
  });
}

std::string NodeProcess::public_address() {
  learn_addresses();
  return public_address_;
}

std::string NodeProcess::internal_address() {
  learn_addresses();
  return internal_address_;
}

Exit NodeProcess::stop() {
  process_.kill(SIGTERM);
  return process_.wait();
}

double NodeProcess::metric(const std::string& series) {
  return metric_in(http_get("http://" + internal_address() + "/metrics").body, series).value_or(0);
}

void NodeProcess::wait_for_metric(const std::string& series, double value) {
  wait_until(series + " to be " + std::to_string(value), [&] { return metric(series) == value; });
}

std::string NodeProcess::health() {
  return http_get("http://" + internal_address() + "/healthz").body;
}

std::string NodeProcess::sql(const std::string& statement) {
  auto environment = environment_;
  environment.push_back("TODOKE_DATA_DIR=" + data_dir_.string());
  const auto exit = run_command(
      {todoke_binary(), "psql", "-X", "-At", "-v", "ON_ERROR_STOP=1", "-c", statement}, environment);
  if (exit.code != 0) throw std::runtime_error("psql: " + exit.err);
  return exit.out.substr(0, exit.out.find_last_not_of('\n') + 1);
}

HttpAnswer http_get(const std::string& url) {
  const auto exit =
      run_command({"curl", "-sS", "--noproxy", "*", "--max-time", "30", "-w", "\n%{http_code}", url});
  if (exit.code != 0) return {0, exit.err};
  const auto split = exit.out.rfind('\n');
  return {std::stoi(exit.out.substr(split + 1)), exit.out.substr(0, split)};
}

std::vector<pid_t> processes_in(const std::filesystem::path& folder) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::error_code gone;
    const auto cwd = std::filesystem::read_symlink(entry.path() / "cwd", gone);
    if (!gone && cwd.string().starts_with(folder.string() + "/"))
      found.push_back(static_cast<pid_t>(std::stoi(name)));
  }
  return found;
}

void wait_until_none_in(const std::filesystem::path& folder) {
  wait_until("the processes in " + folder.string() + " to end", [&] { return processes_in(folder).empty(); });
}

}  // namespace todoke::test

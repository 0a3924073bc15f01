#include "pg/embedded.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <signal.h>
#include <stdexcept>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "pg/embedded_cluster.hpp"
#include "pg/embedded_database.hpp"
#include "pg/embedded_leftovers.hpp"
#include "pg/embedded_lock.hpp"
#include "pg/embedded_log.hpp"
#include "pg/process.hpp"

namespace todoke::pg {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kComponent = "embedded_postgres";

// Together they keep a stop within 5 s.
constexpr milliseconds kFastStopMax(4'000);
constexpr milliseconds kImmediateStopMax(600);
constexpr milliseconds kKillMax(300);

// A former postmaster may have a long checkpoint before it; after that it is made to leave at once, and then
// killed.
constexpr milliseconds kLeftoverFastMax(30'000);
constexpr milliseconds kLeftoverImmediateMax(5'000);
constexpr milliseconds kLeftoverKillMax(5'000);

// initdb takes about a second; a slow disk under load needs more, as it ends with a sync of everything.
constexpr milliseconds kInitdbMax(180'000);
constexpr milliseconds kVersionMax(10'000);
constexpr milliseconds kToolInterruptMax(2'000);
// What a failing tool says last is what matters.
constexpr std::size_t kToolOutputBytesMax = 16 * 1024;

// Between two looks at files and processes that can't be waited for.
constexpr milliseconds kPoll(25);

}  // namespace

// What the reading thread learns from Postgres' log.
struct EmbeddedPostgres::Life {
  void saw(const PostgresLine& line) {
    last_line = std::chrono::steady_clock::now();
    if (line.severity != "FATAL" && line.severity != "PANIC") return;
    const std::lock_guard lock(mutex);
    last_fatal = line.text;
  }
  std::string why() {
    const std::lock_guard lock(mutex);
    return last_fatal.empty() ? std::string() : ": " + last_fatal;
  }

  std::atomic<SteadyTime> last_line{std::chrono::steady_clock::now()};
  std::mutex mutex;
  std::string last_fatal;
};

struct EmbeddedPostgres::ToolResult {
  bool ended_well = false;
  std::string how_it_ended;
  std::string output;
};

EmbeddedPostgres::EmbeddedPostgres(const Executor& executor, EmbeddedConfig config)
    : config_(std::move(config)),
      layout_(embedded_layout(config_.data_dir, ::geteuid())),
      changed_(executor) {}

EmbeddedPostgres::~EmbeddedPostgres() = default;

Expected<void> EmbeddedPostgres::validate() const {
  if (config_.data_dir.empty()) return refuse("the embedded Postgres needs a data folder");
  auto user = embedded_user(config_.user);
  if (!user) return tl::unexpected(user.error());
  auto tcp = embedded_tcp(config_);
  if (!tcp) return tl::unexpected(tcp.error());
  return {};
}

std::optional<pid_t> EmbeddedPostgres::pid() const {
  if (!process_ || process_->ended()) return std::nullopt;
  return process_->pid();
}

Expected<void> EmbeddedPostgres::reload_certificate() {
  const auto user = embedded_user(config_.user);
  if (!user) return tl::unexpected(user.error());
  if (!process_ || process_->ended()) return refuse("Postgres is not running; it reads them when it starts");
  try {
    refresh_certificate(layout_, *user, tcp());
  } catch (const std::exception& error) {
    return refuse(error.what());
  }
  process_->send(SIGHUP);
  return {};
}

void EmbeddedPostgres::stop() {
  stop_asked_ = true;
  changed_.set();
}

void EmbeddedPostgres::throw_if_stopped() const {
  if (stop_asked_) throw std::runtime_error("stopped while starting");
}

std::optional<EmbeddedTcp> EmbeddedPostgres::tcp() const {
  auto tcp = embedded_tcp(config_);
  if (!tcp) throw UserError(tcp.error().message);
  return *tcp;
}

int EmbeddedPostgres::port() const {
  const auto open = tcp();
  return open ? open->address.port : kEmbeddedPort;
}

Task<void> EmbeddedPostgres::start() {
  std::exception_ptr failure;
  try {
    co_await bring_up();
  } catch (...) {
    failure = std::current_exception();
  }
  if (!failure) co_return;
  co_await shut_down();
  std::rethrow_exception(failure);
}

Task<void> EmbeddedPostgres::bring_up() {
  throw_if_stopped();
  auto user = embedded_user(config_.user);
  if (!user) throw UserError(user.error().message);
  std::optional<int> major;
  co_await run_blocking([this, &user, &major] {
    make_data_folder(layout_, *user);
    if (!lock_) lock_ = std::make_unique<DataFolderLock>(layout_.data_dir);
    major = cluster_major(layout_, *user);
    make_socket_folder(layout_, *user);
    remove_half_made(layout_);
  });
  const auto binaries = co_await find_binaries(major);
  co_await end_leftovers();
  if (!major) co_await make_cluster(binaries, *user);
  const auto open = tcp();
  co_await run_blocking([this, &user, &open] {
    if (open) check_address_free(open->address);
    refresh_settings(layout_, *user, open);
  });
  co_await launch(binaries, *user);
  co_await wait_until_ready();
  co_await run_blocking([this] { ensure_embedded_database(layout_); });
  log::info(kComponent, "ready",
            {{"pid", process_->pid()}, {"version", binaries.major}, {"sockets", layout_.sockets}});
}

Task<PostgresBinaries> EmbeddedPostgres::find_binaries(std::optional<int> cluster_major) {
  std::vector<PostgresBinaries> installed;
  if (config_.bin_dir.empty()) {
    installed = installed_postgres();
  } else {
    const auto program = config_.bin_dir + "/postgres";
    if (::access(program.c_str(), X_OK) != 0) {
      throw UserError(fmt::format("database.embedded_bin_dir: there is no program {}", program));
    }
    std::vector<std::string> command{program, "--version"};
    const auto version = co_await run_tool(std::move(command), std::nullopt, {}, kVersionMax);
    const auto major = major_from_version_text(version.output);
    if (!major) throw UserError(fmt::format("{} --version says '{}': no Postgres", program, version.output));
    installed.push_back({config_.bin_dir, *major});
  }
  auto chosen = choose_postgres(installed, cluster_major, layout_.data_dir);
  if (!chosen) throw UserError(chosen.error().message);
  co_return *chosen;
}

Task<void> EmbeddedPostgres::end_leftovers() {
  const auto& cluster = layout_.cluster;
  const auto began = std::chrono::steady_clock::now();
  int last_signal = 0;
  for (;;) {
    std::vector<pid_t> pids;
    co_await run_blocking([&pids, &cluster] { pids = processes_of_cluster(cluster); });
    if (pids.empty()) break;
    throw_if_stopped();
    const auto waited = std::chrono::steady_clock::now() - began;
    const auto postmaster = lock_file_pid(cluster + "/postmaster.pid").value_or(0);
    const bool headless = std::find(pids.begin(), pids.end(), postmaster) == pids.end();

    // SIGINT does nothing to a postmaster that is shutting down already. Backends without a postmaster can do
    // nothing useful any more (the log is replayed anyway), and one of them would keep a new postmaster from
    // starting.
    int wanted = headless ? SIGQUIT : SIGINT;
    const auto patience = headless ? milliseconds(0) : kLeftoverFastMax;
    if (waited > patience) wanted = SIGQUIT;
    if (waited > patience + kLeftoverImmediateMax) wanted = SIGKILL;
    if (waited > patience + kLeftoverImmediateMax + kLeftoverKillMax) {
      throw std::runtime_error(
          fmt::format("an earlier Postgres (pid {}) on {} does not end", pids.front(), cluster));
    }
    if (wanted != last_signal) {
      last_signal = wanted;
      log::warning(
          kComponent, "an earlier Postgres still runs on this data folder; stopping it",
          {{"pid", headless ? pids.front() : postmaster}, {"processes", pids.size()}, {"signal", wanted}});
      for (const auto pid : pids) {
        if (headless || wanted == SIGKILL || pid == postmaster) signal_cluster_process(pid, cluster, wanted);
      }
    }
    co_await changed_.wait_for(kPoll);
    changed_.reset();
  }
  for (const auto& lock_file :
       {cluster + "/postmaster.pid", fmt::format("{}/.s.PGSQL.{}.lock", layout_.sockets, port())}) {
    if (!remove_recycled_lock(lock_file, cluster)) continue;
    log::info(kComponent, "removed a lock file whose process is another program by now",
              {{"path", lock_file}});
  }
}

Task<void> EmbeddedPostgres::make_cluster(PostgresBinaries binaries, EmbeddedUser user) {
  log::info(kComponent, "making a new cluster", {{"path", layout_.cluster}, {"version", binaries.major}});
  std::string staging;
  SeenFolder seen;
  co_await run_blocking([&] {
    staging = make_staging_folder(layout_, user);
    seen = seen_by(user, staging);
  });
  std::vector<int> keep_fds;
  if (seen.fd) keep_fds.push_back(seen.fd.get());
  auto command = initdb_command(binaries, seen.path);
  const auto result = co_await run_tool(std::move(command), user.identity, std::move(keep_fds), kInitdbMax);
  if (!result.ended_well) {
    throw std::runtime_error(fmt::format("initdb failed ({}): {}", result.how_it_ended, result.output));
  }
  co_await run_blocking([&] { finish_cluster(layout_, staging, user); });
}

Task<void> EmbeddedPostgres::launch(PostgresBinaries binaries, EmbeddedUser user) {
  throw_if_stopped();
  SeenFolder cluster;
  SeenFolder sockets;
  co_await run_blocking([&] {
    cluster = seen_by(user, layout_.cluster);
    sockets = seen_by(user, layout_.sockets);
  });
  life_ = std::make_shared<Life>();
  output_ = std::make_unique<OutputPipe>(
      OutputPipe::Overflow::drop, [life = life_, level = log::Level::info](std::string_view text) mutable {
        const auto line = parse_postgres_line(text, level);
        level = line.level;
        life->saw(line);
        log::write(line.level, "postgres", line.text);
      });
  ProcessSpec spec;
  spec.argv = postgres_command(binaries, cluster.path, sockets.path, port());
  spec.environment = child_environment();
  spec.identity = user.identity;
  spec.output_fd = output_->writing_end();
  for (const auto* folder : {&cluster, &sockets}) {
    if (folder->fd) spec.keep_fds.push_back(folder->fd.get());
  }
  std::function<void()> on_end = [this] { changed_.set(); };
  process_ = co_await Process::spawn(std::move(spec), std::move(on_end));
  output_->child_has_it();
}

Task<void> EmbeddedPostgres::wait_until_ready() {
  while (!postmaster_is_ready(layout_.cluster, process_->pid())) {
    throw_if_stopped();
    if (process_->ended()) {
      output_->finish();
      throw std::runtime_error(
          fmt::format("Postgres ended while it started, {}{}", process_->how_it_ended(), life_->why()));
    }
    if (std::chrono::steady_clock::now() - life_->last_line.load() > config_.start_timeout) {
      throw std::runtime_error(fmt::format("Postgres was silent for {} s and is not ready{}",
                                           config_.start_timeout.count() / 1000, life_->why()));
    }
    co_await changed_.wait_for(kPoll);
    changed_.reset();
  }
}

Task<void> EmbeddedPostgres::run() {
  while (process_ && !process_->ended() && !stop_asked_) {
    co_await changed_.wait();
    changed_.reset();
  }
  const bool died = !stop_asked_;
  const auto how = process_ ? process_->how_it_ended() : std::string("was not started");
  co_await shut_down();
  if (died) throw std::runtime_error("Postgres died: " + how);
}

Task<void> EmbeddedPostgres::shut_down() {
  if (process_ && !process_->ended()) {
    process_->send(SIGINT);
    bool ended = co_await process_->wait_for(kFastStopMax);
    if (!ended) {
      log::warning(kComponent, "Postgres takes long to stop; it is stopped at once and will replay its log",
                   {{"pid", process_->pid()}});
      process_->send(SIGQUIT);
      ended = co_await process_->wait_for(kImmediateStopMax);
    }
    if (!ended) {
      log::error(kComponent, "Postgres does not stop; it is killed", {{"pid", process_->pid()}});
      process_->send(SIGKILL);
      co_await process_->wait_for(kKillMax);
      co_await run_blocking([this] {
        for (const auto pid : processes_of_cluster(layout_.cluster))
          signal_cluster_process(pid, layout_.cluster, SIGKILL);
      });
    }
  }
  process_.reset();
  output_.reset();
  if (stop_asked_) lock_.reset();
}

Task<EmbeddedPostgres::ToolResult> EmbeddedPostgres::run_tool(std::vector<std::string> command,
                                                              std::optional<Identity> identity,
                                                              std::vector<int> keep_fds, milliseconds limit) {
  throw_if_stopped();
  std::string output;
  OutputPipe pipe(OutputPipe::Overflow::wait, [&output](std::string_view line) {
    output.append(line).append("\n");
    if (output.size() > kToolOutputBytesMax) output.erase(0, output.size() - kToolOutputBytesMax);
  });
  ProcessSpec spec;
  spec.argv = std::move(command);
  spec.environment = child_environment();
  spec.identity = std::move(identity);
  spec.output_fd = pipe.writing_end();
  spec.keep_fds = std::move(keep_fds);
  std::function<void()> on_end = [this] { changed_.set(); };
  const auto process = co_await Process::spawn(std::move(spec), std::move(on_end));
  pipe.child_has_it();
  const auto deadline = Deadline::after(limit);
  while (!process->ended() && !stop_asked_ && !deadline.passed()) {
    co_await changed_.wait_for(deadline.left());
    changed_.reset();
  }
  if (!process->ended()) {
    process->send(SIGINT);
    co_await process->wait_for(kToolInterruptMax);
    throw_if_stopped();
    throw std::runtime_error(fmt::format("a tool of Postgres did not end within {} s", limit.count() / 1000));
  }
  pipe.finish();
  co_return ToolResult{process->ended_well(), process->how_it_ended(), std::move(output)};
}

}  // namespace todoke::pg

#include "embedded/postgres.hpp"

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
#include "embedded/cluster.hpp"
#include "embedded/leftovers.hpp"
#include "embedded/machine.hpp"
#include "embedded/output.hpp"
#include "pg/connection.hpp"

namespace todoke::embedded {
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
// How long a server that starts may be silent. Crash recovery reports every few seconds, so that even a long
// one is not cut off.
constexpr std::chrono::seconds kSilenceMax(60);
// Making a database takes some hundred milliseconds; the limit is for a machine that is about to fall over.
constexpr milliseconds kDatabaseMax(60'000);
constexpr milliseconds kToolInterruptMax(2'000);
// A failing tool says the important part last.
constexpr std::size_t kToolOutputBytesMax = 16 * 1024;

constexpr pg::Statement kNodeRoleExists{"node_role_exists",
                                        "SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = 'todoke_node'"};
constexpr pg::Statement kDatabaseExists{"database_exists",
                                        "SELECT 1 FROM pg_catalog.pg_database WHERE datname = 'todoke'"};

// Of the disk, before the server is started: recovery writes pages and ends with a checkpoint, which needs a
// new segment or two of the WAL (16 MiB each). A server that finds less stops again at once.
constexpr std::uint64_t kRoomToStart = 64ULL * 1024 * 1024;
constexpr milliseconds kLookForRoom(1'000);
constexpr int kMebibyteBits = 20;

// Between two looks at files and processes that can't be waited for.
constexpr milliseconds kPoll(25);

}  // namespace

// What the reading thread learns from Postgres' log.
struct Postgres::Life {
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

struct Postgres::ToolResult {
  bool ended_well = false;
  std::string how_it_ended;
  std::string output;
};

Postgres::Postgres(const Executor& executor, Options config)
    : config_(std::move(config)), layout_(layout_of(config_.data_dir)), changed_(executor) {}

Postgres::~Postgres() = default;

Expected<void> Postgres::validate() const {
  if (config_.data_dir.empty()) return refuse("the embedded Postgres needs a data folder");
  auto user = user_for(config_.user, config_.data_dir);
  if (!user) return tl::unexpected(user.error());
  auto tcp = tcp_of(config_);
  if (!tcp) return tl::unexpected(tcp.error());
  return {};
}

std::optional<pid_t> Postgres::pid() const {
  if (!process_ || process_->ended()) return std::nullopt;
  return process_->pid();
}

Expected<void> Postgres::reload_certificate() {
  const auto user = user_for(config_.user, config_.data_dir);
  if (!user) return tl::unexpected(user.error());
  try {
    read_certificate();
    // One that is down takes it when it starts.
    if (!process_ || process_->ended()) return {};
    refresh_certificate(layout_, *user, certificate_);
  } catch (const std::exception& error) {
    return refuse(error.what());
  }
  process_->send(SIGHUP);
  return {};
}

void Postgres::read_certificate() {
  const auto open = tcp();
  if (open && !open->tls_cert.empty()) certificate_ = read_tls_files(*open);
}

void Postgres::stop() {
  stop_asked_ = true;
  changed_.set();
}

void Postgres::throw_if_stopped() const {
  if (stop_asked_) throw std::runtime_error("stopped while starting");
}

std::optional<Tcp> Postgres::tcp() const {
  auto tcp = tcp_of(config_);
  if (!tcp) throw UserError(tcp.error().message);
  return *tcp;
}

int Postgres::port() const {
  const auto open = tcp();
  return open ? open->address.port : kPort;
}

Task<void> Postgres::start() {
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

Task<void> Postgres::bring_up() {
  throw_if_stopped();
  auto user = user_for(config_.user, config_.data_dir);
  if (!user) throw UserError(user.error().message);
  std::optional<int> major;
  co_await run_blocking([this, &user, &major] {
    make_data_folder(layout_, *user);
    if (!lock_) lock_ = std::make_unique<DataFolderLock>(layout_.data_dir, *user);
    major = cluster_major(layout_, *user);
    make_socket_folder(layout_, *user);
    remove_half_made(layout_);
  });
  const auto binaries = co_await find_binaries(major);
  co_await end_leftovers();
  co_await wait_for_room();
  if (!major) co_await make_cluster(binaries, *user);
  const auto open = tcp();
  co_await run_blocking([this, &user, &open] {
    if (open) check_address_free(open->address);
    if (!certificate_) read_certificate();
    refresh_settings(layout_, *user, open, certificate_);
  });
  co_await launch(binaries, *user);
  co_await wait_until_ready();
  co_await make_database();
  log::info(kComponent, "ready",
            {{"pid", process_->pid()}, {"version", binaries.major}, {"sockets", layout_.sockets}});
}

Task<PostgresBinaries> Postgres::find_binaries(std::optional<int> cluster_major) {
  std::vector<PostgresBinaries> installed;
  if (config_.bin_dir.empty()) {
    installed = installed_postgres();
  } else {
    const auto program = config_.bin_dir + "/postgres";
    if (::access(program.c_str(), X_OK) != 0) {
      throw UserError(fmt::format("database.embedded_bin_dir: there is no program {}", program));
    }
    Program ask;
    ask.argv = {program, "--version"};
    const auto version = co_await run_tool(std::move(ask), kVersionMax);
    const auto major = major_from_version_text(version.output);
    if (!major) throw UserError(fmt::format("{} --version says '{}': no Postgres", program, version.output));
    installed.push_back({config_.bin_dir, *major});
  }
  auto chosen = choose_postgres(installed, cluster_major, layout_.data_dir);
  if (!chosen) throw UserError(chosen.error().message);
  co_return *chosen;
}

// The least of the disks of the cluster and of its WAL.
Task<std::uint64_t> Postgres::free_bytes() {
  std::uint64_t bytes = 0;
  co_await run_blocking([this, &bytes] {
    bytes = free_disk_bytes(layout_.data_dir);
    const auto wal = layout_.cluster + "/pg_wal";
    if (::access(wal.c_str(), F_OK) == 0) bytes = std::min(bytes, free_disk_bytes(wal));
  });
  co_return bytes;
}

Task<void> Postgres::wait_for_room() {
  bool is_told = false;
  for (;;) {
    const auto bytes = co_await free_bytes();
    if (bytes >= kRoomToStart) break;
    throw_if_stopped();
    if (!std::exchange(is_told, true)) {
      log::error(kComponent, "the disk is full: Postgres starts as soon as there is room",
                 {{"path", layout_.data_dir},
                  {"free_mib", bytes >> kMebibyteBits},
                  {"needed_mib", kRoomToStart >> kMebibyteBits}});
    }
    co_await changed_.wait_for(kLookForRoom);
    changed_.reset();
  }
  if (is_told) log::info(kComponent, "there is room again: Postgres starts");
}

Task<void> Postgres::end_leftovers() {
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

Task<void> Postgres::make_cluster(PostgresBinaries binaries, User user) {
  log::info(kComponent, "making a new cluster", {{"path", layout_.cluster}, {"version", binaries.major}});
  std::string staging;
  SeenFolder seen;
  co_await run_blocking([&] {
    staging = make_staging_folder(layout_, user);
    seen = seen_by(user, staging);
  });
  Program initdb{.identity = user.identity};
  initdb.argv = initdb_command(binaries, path_in_child(seen, initdb));
  const auto result = co_await run_tool(std::move(initdb), kInitdbMax);
  if (!result.ended_well) {
    throw std::runtime_error(fmt::format("initdb failed ({}): {}", result.how_it_ended, result.output));
  }
  co_await run_blocking([&] { finish_cluster(layout_, staging, user); });
}

Task<void> Postgres::launch(PostgresBinaries binaries, User user) {
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
  Program server{.identity = user.identity, .output_fd = output_->writing_end()};
  const auto data = path_in_child(cluster, server);
  server.argv = postgres_command(binaries, data, path_in_child(sockets, server), port());
  std::function<void()> on_end = [this] { changed_.set(); };
  process_ = co_await Child::spawn(std::move(server), std::move(on_end));
  output_->child_has_it();
}

Task<void> Postgres::wait_until_ready() {
  while (!postmaster_is_ready(layout_.cluster, process_->pid())) {
    throw_if_stopped();
    if (process_->ended()) {
      output_->finish();
      throw std::runtime_error(
          fmt::format("Postgres ended while it started, {}{}", process_->how_it_ended(), life_->why()));
    }
    if (std::chrono::steady_clock::now() - life_->last_line.load() > kSilenceMax) {
      throw std::runtime_error(
          fmt::format("Postgres was silent for {} s and is not ready{}", kSilenceMax.count(), life_->why()));
    }
    co_await changed_.wait_for(kPoll);
    changed_.reset();
  }
}

Task<void> Postgres::make_database() {
  const auto deadline = Deadline::after(kDatabaseMax);
  pg::ConnectOptions options;
  options.url = url_of(layout_, kOwnerRole, "postgres");
  const auto connection = co_await pg::Connection::connect(std::move(options), deadline);
  const auto role = co_await connection->query(kNodeRoleExists, {}, deadline);
  if (role.empty()) {
    co_await connection->execute_script(fmt::format("CREATE ROLE {} LOGIN", kNodeRole), deadline);
  }
  const auto database = co_await connection->query(kDatabaseExists, {}, deadline);
  if (database.empty()) co_await connection->execute_script("CREATE DATABASE todoke", deadline);
}

Task<void> Postgres::run() {
  while (process_ && !process_->ended() && !stop_asked_) {
    co_await changed_.wait();
    changed_.reset();
  }
  const bool died = !stop_asked_;
  const auto how = process_ ? process_->how_it_ended() : std::string("was not started");
  co_await shut_down();
  if (!died) co_return;
  const auto bytes = co_await free_bytes();
  const auto* why = bytes < kRoomToStart ? ", its disk is full" : "";
  throw std::runtime_error(fmt::format("Postgres died: {}{}", how, why));
}

Task<void> Postgres::shut_down() {
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

Task<Postgres::ToolResult> Postgres::run_tool(Program program, milliseconds limit) {
  throw_if_stopped();
  std::string output;
  OutputPipe pipe(OutputPipe::Overflow::wait, [&output](std::string_view line) {
    output.append(line).append("\n");
    if (output.size() > kToolOutputBytesMax) output.erase(0, output.size() - kToolOutputBytesMax);
  });
  program.output_fd = pipe.writing_end();
  std::function<void()> on_end = [this] { changed_.set(); };
  const auto process = co_await Child::spawn(std::move(program), std::move(on_end));
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

}  // namespace todoke::embedded

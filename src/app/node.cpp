#include "app/node.hpp"

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <stop_token>
#include <sys/resource.h>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

#include <boost/asio/signal_set.hpp>
#include <fmt/format.h>

#include "app/command.hpp"
#include "app/config_service.hpp"
#include "app/connection_in_use.hpp"
#include "app/data_folder.hpp"
#include "app/database_service.hpp"
#include "app/exposure.hpp"
#include "app/instance_file.hpp"
#include "app/keys.hpp"
#include "app/node_frame.hpp"
#include "app/node_options.hpp"
#include "app/root.hpp"
#include "app/routes.hpp"
#include "app/runtime.hpp"
#include "app/service_manager.hpp"
#include "app/version.hpp"
#include "base/attempt.hpp"
#include "base/live_config.hpp"
#include "base/log.hpp"
#include "base/on_loop.hpp"
#include "base/run_on.hpp"
#include "base/timestamp.hpp"
#include "embedded/machine.hpp"
#include "embedded/postgres.hpp"
#include "net/config.hpp"
#include "net/otlp_exporter.hpp"
#include "net/server.hpp"
#include "orders/worker/config.hpp"
#include "outbox/monitor.hpp"
#include "outbox/retention.hpp"
#include "pg/config.hpp"

namespace todoke::app {
namespace {

// Stopping takes server.drain_timeout and then the shutdown of the services and the database. A service that
// hangs for longer is cut, so that Ctrl-C always works.
constexpr std::chrono::milliseconds kStopLimitAfterDrain(2'800);
// The exit code then: not everything stopped as asked.
constexpr int kExitCut = 1;
// A second signal this soon is the first one again: `timeout` and terminals signal a process and its group.
constexpr std::chrono::milliseconds kSameSignal(50);
// Before the process is ended by force; stderr may be blocked.
constexpr std::chrono::milliseconds kLastWords(200);

// As many files as the system lets us have: the default of many shells would cap the connections at a
// thousand.
void raise_file_limit(const Config& config) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  const auto wanted = open_files_wanted(config);
  if (limit.rlim_max < wanted) {
    log::warning("node", "the limit of open files is lower than server.connections_max needs",
                 {{"limit", limit.rlim_max}, {"wanted", wanted}});
  }
}

// The data folder, private to whoever runs the node.
void make_folder(const Config& config, const DatabaseInUse& database, const std::filesystem::path& folder) {
  if (database.embedded) {
    const auto user = embedded::user_for(config.get(embedded::kUser), folder);
    if (!user) throw UserError(user.error().message);
    embedded::make_data_folder(embedded::layout_of(folder), *user);
    return;
  }
  const auto mask = umask(077);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  umask(mask);
  if (error) throw UserError(fmt::format("data_dir {} can't be made: {}", folder.string(), error.message()));
}

// Takes the owner's connection string out of the configuration, which the node keeps as long as it runs.
DatabaseInUse extract_database(Config& config) {
  auto database = database_in_use(config);
  config.forget(pg::kDatabaseOwnerUrl.spec.name);
  return database;
}

class Node {
 public:
  Node(Config config, const NodeOptions& options)
      : config_(std::move(config)),
        options_(options),
        began_(clock_.steady()),
        runtime_(net::io_threads_from(config_, std::thread::hardware_concurrency())),
        database_(extract_database(config_)),
        folder_(data_folder(config_)),
        frame_(config_, clock_, state_,
               {runtime_.main(), runtime_.relay(), runtime_.consumers(), runtime_.gossip(), runtime_.reads(),
                runtime_.connections(), runtime_.door()},
               database_.url, database_.embedded),
        signals_(runtime_.main(), SIGINT, SIGTERM, SIGHUP),
        stop_(runtime_.main()) {
    state_.registry.gauges("todoke_build_info", "Always 1; the label tells the version.", {"version"})
        .with({kVersion})
        .set(1);
    state_.registry.computed("todoke_log_dropped_total",
                             "Log lines that were dropped because stderr was too slow.",
                             [] { return static_cast<double>(log::dropped()); });
    add_services();
  }

  int run() {
    wait_for_signal();
    runtime_.run(live());
    return 0;
  }

  // Throws UserError for what a start would refuse before it touches anything.
  void validate() const {
    if (const auto checked = config_.check(); !checked) throw UserError(checked.error().message);
    if (const auto checked = check_exposure(config_, options_.roles); !checked)
      throw UserError(checked.error().message);
    frame_.supervisor.validate();
  }

  // Also takes both ports, for a moment.
  void validate_with_ports() {
    validate();
    runtime_.run(take_ports());
  }

 private:
  // Services start in the order in which they depend on each other and stop in the opposite one. The
  // listeners come first, so that health can be asked for from the beginning; the public one is also the
  // first to stop.
  void add_services() {
    add_internal_routes(*frame_.internal_router, state_.board, state_.registry);
    add_public_routes(*frame_.public_router, state_.board, !has_relay());

    if (const auto interval = heartbeat_asked_for()) {
      frame_.supervisor.add(std::make_shared<Heartbeat>(runtime_.main(), *interval, state_.registry));
    }
    frame_.supervisor.add(internal_);
    frame_.supervisor.add(std::make_shared<OnLoop>(runtime_.door(), frame_.server), true);
    if (const auto& endpoint = config_.get(net::keys::kTraceEndpoint); !endpoint.empty()) {
      net::OtlpConfig exporter{.endpoint = endpoint, .service_version = kVersion, .ca_file = {}};
      frame_.supervisor.add(
          std::make_shared<net::OtlpExporter>(std::move(exporter), runtime_.main(), state_.tracer));
    }
    add_storage_watch();
    if (database_.embedded) {
      postgres_ =
          std::make_shared<embedded::Postgres>(runtime_.main(), embedded::options_from(config_, folder_));
      frame_.supervisor.add(postgres_);
    }
    frame_.supervisor.add(std::make_shared<DatabaseService>(
        runtime_.main(), frame_.pools, std::move(database_.owner_url), state_.board, state_.registry));
    frame_.supervisor.add(frame_.listener);
    // Before the services that it configures, so that they start with the values of the database.
    frame_.supervisor.add(config_service_);
    frame_.live.on_change(configure_logs);
    frame_.live.on_change([this](const Config& config) {
      frame_.server->set_hosts(public_hosts(config));
      internal_->set_hosts(internal_hosts(config));
    });
    if (!options_.roles.empty()) add_log_services();
    frame_.build_roles(options_.roles, folder_, options_.loopback);
  }

  // Before the server, so that a disk without room is reported while the server waits to start.
  void add_storage_watch() {
    StorageWatchOptions options;
    if (database_.embedded) options.folders = folders_to_watch(folder_.string());
    options.free_bytes = embedded::free_disk_bytes;
    frame_.add_storage_watch(std::move(options));
  }

  void add_log_services() {
    const auto monitor = std::make_shared<outbox::LogMonitor>(
        runtime_.main(), monitor_options(config_, has_relay()), state_.pressure, frame_.pools.control,
        state_.board, state_.registry);
    const auto retention = std::make_shared<outbox::LogRetention>(
        runtime_.main(), retention_options(config_), frame_.pools.background, state_.board, state_.registry);
    frame_.live.on_change([monitor, retention](const Config& config) {
      monitor->set_thresholds(pressure_thresholds(config));
      retention->set_bounds(retention_options(config));
    });
    frame_.supervisor.add(monitor);
    frame_.supervisor.add(retention);
  }

  std::shared_ptr<net::HttpServer> make_internal_server() {
    auto config = internal_server_config(config_);
    config.router = frame_.internal_router;
    return std::make_shared<net::HttpServer>(std::move(config), runtime_.main(), std::vector{runtime_.main()},
                                             state_.registry, &state_.tracer);
  }

  Task<void> live() {
    validate();
    refuse_second_node();
    co_await take_ports();
    tell_exposure();
    leave_root();
    make_folder(config_, database_, folder_);
    const InstanceFile instance(folder_, notes());
    if (options_.banner) print(banner());
    const auto served = co_await attempt(serve());
    cut_when_stuck();
    co_await frame_.supervisor.stop();
    if (!served) std::rethrow_exception(served.error());
    log::info("node", "stopped");
  }

  // Until a stop is asked for.
  Task<void> serve() {
    co_await frame_.supervisor.start();
    if (!stop_.is_set()) tell_ready();
    co_await stop_.wait();
  }

  // The embedded database has a lock of its own; this check comes before the ports are taken, and says more
  // than a port in use.
  void refuse_second_node() const {
    if (!database_.embedded) return;
    for (const auto& other : running_instances(folder_)) {
      const auto database = other.notes.find(kDatabaseNote);
      if (database == other.notes.end() || database->second != kEmbedded) continue;
      throw UserError(
          fmt::format("the data folder {} is in use by another todoke (pid {}): stop that one, or choose "
                      "another folder with TODOKE_DATA_DIR",
                      folder_.string(), other.pid));
    }
  }

  void tell_exposure() const {
    for (const auto& warning : exposure_warnings(config_, options_.roles)) log::warning("node", warning);
  }

  // The work that needs root is done: ports below 1024 are taken, and certificates and tokens that only root
  // can read are read.
  void leave_root() {
    if (postgres_ && gives_up_root(config_)) postgres_->read_certificate();
    user_ = give_up_root(config_, folder_, database_.embedded);
  }

  // Both ports are taken before the database is touched: a port that is in use is reported at once.
  Task<void> take_ports() {
    co_await bind(*internal_, "server.internal_listen");
    co_await run_on(runtime_.door(), bind(*frame_.server, "server.listen"));
  }

  static Task<void> bind(net::HttpServer& server, std::string_view key) {
    std::string refused;
    try {
      co_await server.bind();
    } catch (const UserError& error) {
      refused = error.what();
    }
    if (!refused.empty()) throw UserError(fmt::format("{} ({}; port 0 takes any)", refused, key));
  }

  void tell_ready() {
    const auto took = std::chrono::duration<double>(clock_.steady() - began_).count();
    log::info("node", "ready",
              {{"public", frame_.server->address()}, {"internal", internal_->address()}, {"seconds", took}});
    if (options_.banner) print(fmt::format("ready after {:.2f} s\n", took));
    tell_service_manager("READY=1");
  }

  void wait_for_signal() {
    signals_.async_wait([this](boost::system::error_code error, int signal) {
      if (error) return;
      if (signal == SIGHUP && isatty(STDIN_FILENO) == 0) {
        reload();
      } else if (stop_.is_set()) {
        if (clock_.steady() - stop_asked_at_ < kSameSignal) return wait_for_signal();
        log::warning("node", "second signal: stopping at once");
        log::flush(kLastWords);
        _exit(128 + signal);
      } else {
        log::info("node", "stopping", {{"signal", signal}});
        tell_service_manager("STOPPING=1");
        if (options_.banner) print("stopping\n");
        stop_asked_at_ = clock_.steady();
        stop_.set();
        frame_.supervisor.interrupt();
      }
      wait_for_signal();
    });
  }

  // Files are read again: the configuration, and those that it names.
  void reload() {
    if (!user_.empty()) tell_root_only(config_, user_);
    read_config_again();
    frame_.read_files();
    if (!config_.get(net::keys::kTlsCert).empty())
      tell_reloaded(net::keys::kTlsCert, frame_.server->reload());
    if (!config_.get(net::keys::kInternalTlsCert).empty())
      tell_reloaded(net::keys::kInternalTlsCert, internal_->reload());
    if (postgres_ && !config_.get(embedded::kLogTlsCert).empty())
      tell_reloaded(embedded::kLogTlsCert, postgres_->reload_certificate());
  }

  static void tell_reloaded(const Key<std::string>& key, const Expected<void>& reloaded) {
    if (reloaded) {
      log::info("node", "certificate read again", {{"key", key.spec.name}});
    } else {
      log::error("node", "certificate not changed",
                 {{"key", key.spec.name}, {"error", reloaded.error().message}});
    }
  }

  void read_config_again() {
    if (!options_.read_config) return;
    try {
      auto config = options_.read_config();
      config.forget(pg::kDatabaseOwnerUrl.spec.name);
      tell_not_taken(config);
      if (const auto taken = frame_.live.set_base(config); !taken) {
        log::error("node", "settings not changed", {{"error", taken.error().message}});
        return;
      }
      log::info("node", "settings read again");
      config_service_->tell_hidden();
    } catch (const UserError& error) {
      log::error("node", "configuration not read again", {{"error", error.what()}});
    }
  }

  void tell_not_taken(const Config& later) {
    std::string names;
    for (const auto* spec : config_.changed_in(later)) {
      if (!spec->reread && !spec->live) names += fmt::format("{}{}", names.empty() ? "" : ", ", spec->name);
    }
    if (!names.empty()) log::warning("node", "changed settings that need a restart", {{"keys", names}});
  }

  // A thread of its own: what is stuck may be the event loop itself.
  void cut_when_stuck() {
    const auto limit = config_.get(net::keys::kDrainTimeout) + frame_.stop_extra() + kStopLimitAfterDrain;
    stuck_guard_ = std::jthread([limit](const std::stop_token& done) {
      pthread_setname_np(pthread_self(), "stop-guard");
      std::mutex mutex;
      std::condition_variable_any wake;
      std::unique_lock lock(mutex);
      wake.wait_for(lock, done, limit, [] { return false; });
      if (done.stop_requested()) return;
      // Nothing that was acknowledged is lost by this; the embedded database goes on with its own shutdown.
      log::error("node", "stopping took too long, cutting what is left");
      log::flush(kLastWords);
      _exit(kExitCut);
    });
  }

  [[nodiscard]] std::string role_text() const {
    return options_.roles.empty() ? std::string("none") : fmt::format("{}", fmt::join(options_.roles, ", "));
  }

  [[nodiscard]] std::map<std::string, std::string> notes() const {
    auto notes = settings_notes(config_);
    notes.insert({{"version", kVersion},
                  {"roles", role_text()},
                  {"public", frame_.server->address()},
                  {"internal", internal_->address()},
                  {kDatabaseNote, database_.embedded ? kEmbedded : kConfigured},
                  {"started_at", format_timestamp(clock_.now(), 0)}});
    if (!database_.embedded) notes.emplace(kDatabaseAtNote, database_place(database_.url));
    return notes;
  }

  [[nodiscard]] bool has_relay() const {
    return std::find(options_.roles.begin(), options_.roles.end(), "relay") != options_.roles.end();
  }

  [[nodiscard]] std::string relay_line() const {
    if (!has_relay()) return "";
    const auto* scheme = config_.get(net::keys::kTlsCert).empty() ? "ws" : "wss";
    return fmt::format("  relay      {}://{}/relay (topics: `todoke topic list`)\n", scheme,
                       frame_.server->address());
  }

  [[nodiscard]] std::string banner() const {
    const auto* scheme = config_.get(net::keys::kTlsCert).empty() ? "http" : "https";
    const auto* internal_scheme = config_.get(net::keys::kInternalTlsCert).empty() ? "http" : "https";
    return fmt::format(
        "todoke {}\n"
        "  roles      {}\n"
        "  data       {}\n"
        "  database   {}\n"
        "  public     {}://{}\n"
        "  internal   {}://{} (health, metrics, Admin API)\n"
        "{}"
        "  try        curl -s http://{}/healthz\n"
        "  stop       Ctrl-C\n",
        kVersion, role_text(), folder_.string(), database_.shown, scheme, frame_.server->address(),
        internal_scheme, internal_->address(), relay_line(), internal_->address());
  }

  Config config_;
  const NodeOptions& options_;
  SystemClock clock_;
  SteadyTime began_;
  SteadyTime stop_asked_at_{};
  std::jthread stuck_guard_;  // outlives what may hang while it is destroyed
  NodeState state_;
  Runtime runtime_;
  DatabaseInUse database_;
  std::filesystem::path folder_;
  std::string user_;  // the user that the node has become, where it was started as root
  NodeFrame frame_;
  std::shared_ptr<net::HttpServer> internal_ = make_internal_server();
  std::shared_ptr<embedded::Postgres> postgres_;  // null: the database is a configured one
  std::shared_ptr<ConfigService> config_service_ = std::make_shared<ConfigService>(
      runtime_.main(), frame_.live, frame_.pools.control, *frame_.listener, state_.board, state_.registry);
  asio::signal_set signals_;
  Signal stop_;
};

}  // namespace

Config config_of_up(Config config) {
  if (config.is_default(orders::keys::kEnabled.spec.name)) {
    config.set_flag(orders::keys::kEnabled.spec.name, "true");
  }
  return config;
}

Expected<void> check_node(const Config& config, const NodeOptions& options, bool with_ports) {
  try {
    Node node(config, options);
    if (with_ports) {
      node.validate_with_ports();
    } else {
      node.validate();
    }
  } catch (const UserError& error) {
    return refuse(error.what());
  }
  return {};
}

int run_node(Config config, const NodeOptions& options) {
  if (gives_up_root(config)) begin_as_root();
  configure_logs(config);
  raise_file_limit(config);
  Node node(std::move(config), options);
  return node.run();
}

}  // namespace todoke::app

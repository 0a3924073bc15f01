// Looks at a deployment from the outside and says, for everything that is not well, what to do.
#include <cstdio>
#include <filesystem>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "admin/service_configs.hpp"
#include "app/commands.hpp"
#include "app/connection_in_use.hpp"
#include "app/data_folder.hpp"
#include "app/database_service.hpp"
#include "app/effective_config.hpp"
#include "app/exposure.hpp"
#include "app/instance_file.hpp"
#include "app/keys.hpp"
#include "app/node.hpp"
#include "app/node_options.hpp"
#include "app/roles.hpp"
#include "app/routes.hpp"
#include "app/statements_sql.hpp"
#include "app/storage_watch.hpp"
#include "base/live_config.hpp"
#include "base/log.hpp"
#include "embedded/binaries.hpp"
#include "embedded/cluster.hpp"
#include "embedded/config.hpp"
#include "embedded/tcp.hpp"
#include "gossip/config.hpp"
#include "gossip/endpoint.hpp"
#include "index/index_consumer.hpp"
#include "net/client.hpp"
#include "net/config.hpp"
#include "outbox/admin.hpp"
#include "pg/config.hpp"
#include "pg/migrations.hpp"
#include "relay/capacity.hpp"
#include "relay/config.hpp"
#include "relay/retention.hpp"

namespace todoke::app {
namespace {

constexpr std::chrono::seconds kAskLimit(5);
constexpr int kHealthyStatus = 200;

class Report {
 public:
  void ok(std::string_view what, const std::string& text) { line("ok", what, text); }
  void note(std::string_view what, const std::string& text) { line("note", what, text); }
  void warn(std::string_view what, const std::string& text) { line("warn", what, text); }
  void fail(std::string_view what, const std::string& text) {
    failed_ = true;
    line("FAIL", what, text);
  }
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  static void line(std::string_view level, std::string_view what, const std::string& text) {
    std::fputs(fmt::format("{:<5} {:<14} {}\n", level, what, text).c_str(), stdout);
  }
  bool failed_ = false;
};

// `running`: checks what the next start of a running node would see, with its flags and environment.
void check_configuration(Report& report, const Config& config, std::vector<std::string> roles, bool running) {
  const auto checked = check_node(config, {.roles = std::move(roles)}, !running);
  if (!checked) {
    report.fail("configuration", fmt::format("{}{}", running ? "the next start would be refused: " : "",
                                             checked.error().message));
    return;
  }
  std::size_t set = 0;
  for (const auto& [name, spec] : config.schema().keys()) set += config.is_default(name) ? 0U : 1U;
  report.ok("configuration",
            fmt::format("{} keys set by file, environment or flags; `todoke config` shows every value", set));
}

std::string mib(std::uint64_t bytes) {
  constexpr int kMebibyteBits = 20;
  return fmt::format("{} MiB", bytes >> kMebibyteBits);
}

// The room that the embedded database has: on the disk of the data folder, and on that of its WAL.
void check_room(Report& report, const Config& config, const std::filesystem::path& folder, bool embedded) {
  const auto least = embedded ? free_bytes_min(config) : 0;
  for (const auto& [name, path] : folders_to_watch(folder.string())) {
    std::error_code error;
    auto existing = std::filesystem::path(path);
    while (!existing.empty() && !std::filesystem::exists(existing, error)) existing = existing.parent_path();
    const auto space = std::filesystem::space(existing, error);
    if (error) continue;
    const auto what = name == "data" ? std::string("free space") : std::string("free space wal");
    const auto text =
        fmt::format("{} of {} on the disk of {}", mib(space.available), mib(space.capacity), path);
    if (least > 0 && space.available < least) {
      report.fail(
          what, fmt::format("{}, less than capacity.min_free_bytes ({}): nothing is stored; make room", text,
                            mib(least)));
    } else if (least > 0 && space.available < 2 * least) {
      report.warn(what, fmt::format("{}; below {} nothing is stored: make room", text, mib(least)));
    } else {
      report.ok(what, text);
    }
  }
}

Task<void> check_capacity(pg::Connection& connection, const Config& config, Report& report) {
  const auto limits = relay::capacity_from(config);
  const auto use = co_await relay::database_use(connection, answer_deadline());
  const auto text =
      fmt::format("the database has {} and {} events; capacity.max_bytes {}, capacity.max_events {}",
                  mib(static_cast<std::uint64_t>(use.size)), use.events,
                  limits.bytes_max == 0 ? "none" : mib(static_cast<std::uint64_t>(limits.bytes_max)),
                  limits.events_max == 0 ? "none" : std::to_string(limits.events_max));
  const auto share = relay::share_in_use(use, limits);
  if (outbox::next_capacity_pressure(0, share) > 0) {
    const auto stays = relay::bytes_that_stay(use, limits.has_search);
    report.warn("capacity",
                fmt::format("{}: {} % in use, {} of it stays whatever is purged (docs/capacity.md)", text,
                            share / 10, mib(static_cast<std::uint64_t>(stays))));
  } else {
    report.ok("capacity", text);
  }
}

void check_exposed(Report& report, const Config& config, const std::vector<std::string>& roles,
                   bool running) {
  for (const auto& [what, text] : exposure_lines(config, roles)) report.ok(what, text);
  for (const auto& warning : exposure_warnings(config, roles)) report.warn("exposure", warning);
  if (const auto checked = check_broker_of_up(config); !checked && !running)
    report.note("up", checked.error().message);
}

void check_user(Report& report, const Config& config, const std::filesystem::path& folder, bool embedded) {
  const auto user = embedded::user_for(config.get(embedded::kUser), folder, embedded);
  if (!user) {
    report.fail("user", user.error().message);
  } else if (!user->identity) {
    report.ok("user", fmt::format("{}, started by this user", user->name));
  } else if (config.get(embedded::kUser) == embedded::kStayRoot) {
    report.warn(
        "user",
        fmt::format(
            "server.user is root: a flaw in the node would open the whole machine (Postgres runs as {})",
            user->name));
  } else {
    report.ok("user", fmt::format("a node that root starts becomes {}, and its Postgres runs as {}",
                                  user->name, user->name));
  }
}

void check_folder(Report& report, const std::filesystem::path& folder) {
  std::error_code error;
  auto existing = folder;
  while (!existing.empty() && !std::filesystem::exists(existing, error)) existing = existing.parent_path();
  if (!std::filesystem::is_directory(existing, error)) {
    report.fail("data folder",
                fmt::format("{} is no folder; choose another with TODOKE_DATA_DIR", existing.string()));
    return;
  }
  if (access(existing.c_str(), W_OK) != 0) {
    report.fail("data folder",
                fmt::format("{} can't be written by this user; choose another with TODOKE_DATA_DIR",
                            existing.string()));
    return;
  }
  report.ok("data folder", folder.string());
}

void check_programs(Report& report, const Config& config, const std::filesystem::path& folder) {
  const auto user = embedded::user_for(config.get(embedded::kUser), folder);
  if (!user) {
    report.fail("postgres", user.error().message);
    return;
  }
  try {
    const auto layout = embedded::layout_of(folder);
    const auto chosen = embedded::choose_postgres(embedded::installed_postgres(),
                                                  embedded::cluster_major(layout, *user), folder);
    if (chosen) {
      report.ok("postgres", fmt::format("version {} in {}", chosen->major, chosen->bin_dir));
    } else {
      report.fail("postgres", chosen.error().message);
    }
  } catch (const std::exception& error) {
    report.fail("postgres", error.what());
  }
}

void check_file_limit(Report& report, const Config& config) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const auto wanted = open_files_wanted(config);
  if (limit.rlim_max < wanted) {
    report.warn(
        "open files",
        fmt::format("limit {}, but server.connections_max asks for {}: raise it (ulimit -Hn, LimitNOFILE=)",
                    limit.rlim_max, wanted));
  } else {
    report.ok("open files", fmt::format("limit {}", limit.rlim_max));
  }
}

void check_log_access(Report& report, const Config& config, const std::filesystem::path& folder,
                      bool embedded) {
  const auto& listen = config.get(embedded::kLogListen);
  const auto tcp = embedded::tcp_of(embedded::options_from(config, folder));
  if (!tcp) {
    report.fail("log.listen", tcp.error().message);
    return;
  }
  if (!*tcp) return;
  if (!embedded) {
    report.warn("log.listen",
                "has no effect: the database is a configured one, which is opened by its own means");
    return;
  }
  const auto& host = (*tcp)->address.host;
  const bool tls = !(*tcp)->tls_cert.empty();
  const bool stays_here = host.starts_with("127.") || host == "::1" || host == "localhost";
  try {
    if (tls) embedded::read_tls_files(**tcp);
  } catch (const UserError& error) {
    report.fail("log.listen", error.what());
    return;
  }
  if (!tls && !stays_here) {
    report.warn("log.listen",
                listen + ", without TLS: others on the way can read along; set log.tls_cert and log.tls_key");
  } else {
    report.ok("log.listen", fmt::format("{}{}, for consumers of the log", listen, tls ? " with TLS" : ""));
  }
}

Task<void> check_search(pg::Connection& connection, Report& report) {
  const std::string name(index::kConsumerName);
  const auto views = co_await outbox::list_consumers(connection, name, Deadline::after(kAskLimit));
  if (views.empty() || !views.front().held) {
    report.warn("search", fmt::format("relay.search is on, but no node runs {}: start one with the role {}",
                                      name, role_of_consumer(name)));
  } else if (views.front().paused) {
    report.warn("search", fmt::format("relay.search is on, but {} is paused: `todoke consumers resume {}`",
                                      name, name));
  } else if (views.front().state == "needs_rebuild") {
    report.warn(
        "search",
        fmt::format("relay.search is on, but {} has lost rows: `todoke consumers rebuild {}`", name, name));
  } else {
    report.ok("search", fmt::format("relay.search is on, and a node runs {}", name));
  }
}

Task<void> check_role(pg::Connection& connection, Report& report) {
  const auto rights = co_await connection.query(sql::kRoleRights, {}, Deadline::after(kAskLimit));
  const auto role = rights.one().get<std::string>(0);
  if (rights.one().get<bool>(1)) {
    report.warn("database role",
                fmt::format("{} owns the tables: a flaw in the node could change the schema and erase the "
                            "audit; database.owner_url lets the node run as another role (docs/database.md)",
                            role));
  } else {
    report.ok("database role", fmt::format("{} can change neither the schema nor the audit", role));
  }
}

Task<void> check_locks(pg::Connection& connection, Report& report) {
  const auto open = co_await connection.query(sql::kLocksAreOpen, {}, Deadline::after(kAskLimit));
  if (open.empty() || !open.one().get<bool>(0)) co_return;
  report.warn(
      "consumers",
      "their roles may take advisory locks, and could hold up ingest: as a superuser of this database, "
      "SELECT cn_admin.guard_locks('ROLE OF THE NODE') takes that away (docs/database.md)");
}

void check_rates(const Config& config, Report& report) {
  if (config.get(net::keys::kRates) != "off") return;
  report.warn(
      "limits.rates",
      fmt::format("off (from {}): every rate limit is lifted; only for benchmarks and trusted networks",
                  config.setting(net::keys::kRates.spec.name).source));
}

Task<void> check_live_configuration(pg::Connection& connection, const Config& config, Report& report) {
  LiveConfig live(config);
  const auto rows = co_await admin::read_service_configs(connection, Deadline::after(kAskLimit));
  live.set_rows(rows);
  std::size_t set = 0;
  for (const auto& row : rows) set += row.values.size();
  report.ok("live keys", fmt::format("{} set in the database", set));
  check_rates(live.config(), report);
  for (const auto& problem : live.problems()) {
    report.fail("live keys", problem + ": `todoke config set` or `unset` mends it");
  }
  const auto problems =
      co_await relay::period_problems(connection, relay::retention_periods_from(live.config()), std::nullopt,
                                      std::nullopt, Deadline::after(kAskLimit));
  if (!problems.empty()) report.fail("retention", relay::period_text(problems));
  for (const auto& hidden : live.hidden()) report.warn("live keys", "no effect: " + hidden);
  for (const auto& removed : live.config().removed_settings()) {
    if (removed.layer == Layer::database) report.warn("live keys", removed.text + " (`todoke config unset`)");
  }
}

Task<void> check_database(pg::Connection& connection, const Config& config, Report& report) {
  const auto deadline = Deadline::after(kAskLimit);
  check_server_version(connection);
  const auto settings = co_await connection.query(sql::kDurabilitySettings, {}, deadline);
  std::string unsafe;
  for (const auto& row : settings) {
    if (row.get<std::string>(1) == "off") unsafe += " " + row.get<std::string>(0);
  }
  const auto version =
      fmt::format("Postgres {}.{}", connection.server_version() / 10000, connection.server_version() % 10000);
  if (unsafe.empty()) {
    report.ok("database", version + ", reached");
  } else {
    report.fail("database",
                fmt::format("{}, but{} is off: what was acknowledged can be lost in a crash; turn it on",
                            version, unsafe));
  }
  const auto status = co_await pg::migration_status(connection, pg::embedded_migrations(), deadline);
  if (!status.problem.empty()) {
    report.fail("migrations", status.problem);
  } else if (status.pending.empty()) {
    report.ok("migrations", "all applied");
    co_await check_role(connection, report);
    co_await check_locks(connection, report);
    co_await check_live_configuration(connection, config, report);
    if (relay::search_is_on(config)) co_await check_search(connection, report);
    co_await check_capacity(connection, config, report);
  } else {
    report.warn("migrations", fmt::format("{} not applied yet; `todoke migrate` or the next start does it",
                                          status.pending.size()));
  }
}

Task<void> ask_health(net::HttpClient& client, std::string address, Report& report) {
  net::ClientRequest request;
  request.url = net::parse_url(fmt::format("http://{}/healthz", address)).value();
  const auto response = co_await client.send(std::move(request), Deadline::after(kAskLimit));
  const auto text = health_summary(response.body);
  if (response.status != kHealthyStatus) {
    report.fail("health", text);
  } else if (text != "up") {
    report.warn("health", text);
  } else {
    report.ok("health", text);
  }
}

// What the node has seen of a proxy that it does not know (net/refusal_log.hpp).
Task<void> ask_about_proxies(net::HttpClient& client, std::string address, Report& report) {
  constexpr std::string_view kSuspected = "\ntodoke_proxy_suspected_total ";
  net::ClientRequest request;
  request.url = net::parse_url(fmt::format("http://{}/metrics", address)).value();
  const auto response = co_await client.send(std::move(request), Deadline::after(kAskLimit));
  const auto at = response.body.find(kSuspected);
  if (at == std::string::npos || response.body[at + kSuspected.size()] == '0') co_return;
  report.warn("proxies",
              "most refusals hit one address that names other clients; if it is a proxy, list it in "
              "server.trusted_proxies: all clients behind it count as one");
}

Task<void> ask_health_and_proxies(net::HttpClient& client, std::string address, Report& report) {
  co_await ask_health(client, address, report);
  co_await ask_about_proxies(client, address, report);
}

void check_instances(Report& report, const std::vector<Instance>& instances,
                     const std::filesystem::path& folder) {
  if (instances.empty())
    report.note("nodes", fmt::format("none runs on {}; `todoke up` starts one", folder.string()));
  for (const auto& instance : instances) {
    const auto note = [&](const char* name) {
      const auto found = instance.notes.find(name);
      return found == instance.notes.end() ? std::string("?") : found->second;
    };
    report.ok("node", fmt::format("pid {}, version {}, roles {}, public {}, internal {}", instance.pid,
                                  note("version"), note("roles"), note("public"), note("internal")));
    try {
      Runtime runtime;
      net::HttpClient client(runtime.main());
      runtime.run(ask_health_and_proxies(client, note("internal"), report));
    } catch (const std::exception& error) {
      report.fail("health", fmt::format("{} does not answer: {}", note("internal"), error.what()));
    }
  }
}

std::vector<std::string> roles_of(const Instance& instance) {
  const auto noted = instance.notes.find("roles");
  auto text = noted == instance.notes.end() ? std::string("none") : noted->second;
  std::erase(text, ' ');
  return parse_roles(text);
}

void check_running(Report& report, const Instance& instance, const Config& config) {
  const auto database = instance.notes.find(kDatabaseNote);
  const bool is_configured = database != instance.notes.end() && database->second == kConfigured;
  if (is_configured && config.get(pg::kDatabaseUrl).empty()) {
    report.note("configuration",
                fmt::format("of pid {}: not checked, its database.url is not known here", instance.pid));
    return;
  }
  check_configuration(report, config, roles_of(instance), true);
}

void check_gossip(Report& report, const Config& config) {
  if (!gossip::left_out().empty()) {
    report.note("gossip", fmt::format("left out of this build: {}", gossip::left_out()));
  } else if (!gossip::is_on(config)) {
    report.note("gossip", "off (gossip.enabled)");
  } else {
    report.ok("gossip", "on; `todoke p2p info` prints what other nodes dial");
  }
}

int run_doctor(const Arguments& arguments) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);               // a line shows when it is known, also in a pipe
  log::configure(log::Level::error, log::Format::human);  // the report says it all
  Report report;
  const auto config = load_config(arguments);
  const auto folder = data_folder(config);
  const auto database = database_in_use(config);
  const auto instances = running_instances(folder);
  auto used = config;
  try {
    if (instances.empty()) {
      check_configuration(report, config_of_up(config), all_roles(), false);
      check_exposed(report, config, all_roles(), false);
    }
    for (const auto& instance : instances) {
      used = config_of_next_start(instance, config);
      for (const auto& [key, value] : arguments.keys) used.set_flag(key, value);
      check_running(report, instance, used);
      check_exposed(report, used, roles_of(instance), true);
    }
  } catch (const UserError& error) {
    report.fail("configuration", error.what());
  }
  for (const auto& removed : used.removed_settings()) report.warn("configuration", removed.text);
  check_user(report, used, folder, database.embedded);
  check_folder(report, folder);
  check_room(report, used, folder, database.embedded);
  check_file_limit(report, used);
  if (database.embedded && config.get(embedded::kBinDir).empty()) check_programs(report, config, folder);
  check_log_access(report, used, folder, database.embedded);
  try {
    const auto reached = command_config(arguments, Tell::no);
    if (database_in_use(reached).embedded && !embedded_is_running(reached)) {
      report.note("database", database_in_use(reached).shown + ", not running");
      check_rates(used, report);
    } else {
      with_database(reached,
                    [&](pg::Connection& connection) { return check_database(connection, used, report); });
    }
  } catch (const std::exception& error) {
    report.fail("database", error.what());
  }
  check_instances(report, instances, folder);
  check_gossip(report, used);
  return report.failed() ? 1 : 0;
}

}  // namespace

Command doctor_command() {
  return {
      .name = "doctor",
      .summary = "check a deployment and say what to do about what is not well",
      .synopsis = "",
      .details = "Lines are ok, note, warn or FAIL; the exit code is 1 when one of them is FAIL.",
      .run = run_doctor,
  };
}

}  // namespace todoke::app

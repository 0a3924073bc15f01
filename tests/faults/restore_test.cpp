// Databases that are really restored and promoted: no seq is ever given out twice, and relays that stay up go
// on.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "faults/rig.hpp"
#include "faults/subscriber.hpp"

namespace todoke::test {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSeqEnd = std::int64_t{1} << 53;

void run_well(const std::vector<std::string>& command) {
  const auto exit = run_command(command);
  if (exit.code != 0) throw std::runtime_error(command.front() + ": " + exit.err);
}

// As the user that Postgres runs as.
std::vector<std::string> as_server_user(std::vector<std::string> command) {
  if (::geteuid() == 0) command.insert(command.begin(), {"runuser", "-u", "postgres", "--"});
  return command;
}

// Gives a cluster's files to the user that runs the server.
void hand_over(const fs::path& cluster) {
  if (::geteuid() == 0) run_well({"chown", "-R", "postgres:postgres", cluster.string()});
  fs::permissions(cluster, fs::perms::owner_all);
}

class Restore : public testing::Test {
 protected:
  static nostr::Event publish(RelayProcess& relay, const std::string& content = "a note") {
    const auto event = note(nostr::SecretKey::generate(), content);
    NostrClient client(relay.url());
    wait_until("an OK true", [&] { return client.publish(event).accepted; });
    return event;
  }
  // As if many rows more had been written.
  static void write_many(SqlSession& database) {
    database.run(
        "SELECT setval('cn_relay.events_outbox_seq', last_value + 2500000) "
        "FROM cn_relay.events_outbox_seq");
  }

  // Every seq has one row for ever, wherever the log has been read.
  void remember(SqlSession& database) {
    for (const auto& row :
         database.run("SELECT seq || ' ' || op || ' ' || event_id FROM cn_relay.events_outbox")) {
      const auto seq = std::stoll(row);
      const auto [known, is_new] = given_out_.emplace(seq, row);
      EXPECT_EQ(known->second, row) << "given out twice";
      EXPECT_LT(seq, kSeqEnd);
    }
  }
  // Publishes, and the rows of that come after everything that was given out before.
  nostr::Event publish_later(RelayProcess& relay, SqlSession& database) {
    const auto last = given_out_.rbegin()->first;
    auto event = publish(relay);
    remember(database);
    EXPECT_GT(std::stoll(database.value(fmt::format(
                  "SELECT seq FROM cn_relay.events_outbox WHERE event_id = '{}'", event.id().hex()))),
              last);
    return event;
  }
  static void stop(RelayProcess& relay) {
    relay.process().kill(SIGTERM);
    EXPECT_EQ(relay.process().wait().code, 0);
  }

  fs::path base_backup(const std::string& name, const std::vector<std::string>& more = {}) {
    const auto backup = aside.path() / name;
    std::vector<std::string> command{"pg_basebackup",
                                     "-h",
                                     (folder.path() / "run").string(),
                                     "-U",
                                     "todoke",
                                     "-D",
                                     backup.string(),
                                     "-X",
                                     "stream",
                                     "-c",
                                     "fast"};
    command.insert(command.end(), more.begin(), more.end());
    run_well(command);
    return backup;
  }
  fs::path dump() {
    const auto file = aside.path() / "dump.sql";
    run_well({"pg_dump", "-d", conninfo_of(folder.path()), "-f", file.string()});
    return file;
  }
  // Makes the database `copy` in the cluster of a node, of a dump.
  static std::string read_into_copy(const fs::path& data_dir, const fs::path& file) {
    SqlSession(conninfo_of(data_dir)).run("CREATE DATABASE copy");
    const auto copy = "host=" + (data_dir / "run").string() + " user=todoke dbname=copy";
    run_well({"psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", copy, "-f", file.string()});
    return copy;
  }

  TempFolder aside;
  TempFolder folder;
  std::map<std::int64_t, std::string> given_out_;
};

TEST_F(Restore, OfABaseBackupInItsPlaceTwice) {
  auto node = std::make_unique<RelayProcess>(folder.path());
  publish(*node);
  const auto backup = base_backup("backup");
  {
    SqlSession database(conninfo_of(folder.path()));
    write_many(database);
    publish(*node);
    remember(database);
  }
  for (int i = 0; i < 2; ++i) {
    stop(*node);
    node.reset();
    const auto cluster = folder.path() / "postgres";
    fs::remove_all(cluster);
    fs::copy(backup, cluster, fs::copy_options::recursive);
    hand_over(cluster);
    node = std::make_unique<RelayProcess>(folder.path());
    SqlSession database(conninfo_of(folder.path()));
    EXPECT_EQ(database.value("SELECT count(*) FROM cn_relay.events_outbox"), "1");
    publish_later(*node, database);
  }
  // A start is no restore.
  stop(*node);
  node = std::make_unique<RelayProcess>(folder.path());
  SqlSession database(conninfo_of(folder.path()));
  const auto last = given_out_.rbegin()->first;
  publish_later(*node, database);
  EXPECT_LT(given_out_.rbegin()->first, last + 1'000);
}

TEST_F(Restore, OfADumpIntoItsOwnDatabaseUnderRelaysThatStayUp) {
  RelayProcess node(folder.path());
  const TempFolder other_folder;
  RelayProcess other(other_folder.path(), {}, {"DATABASE_URL=" + conninfo_of(folder.path())});
  LiveSubscriber subscriber(node.url(), kOnlyLive);
  LiveSubscriber other_subscriber(other.url(), kOnlyLive);
  publish(node);
  const auto file = dump();
  SqlSession database(conninfo_of(folder.path()));
  write_many(database);
  const auto lost = publish(node, "not in the dump");
  const auto lost_too = publish(node, "not in the dump either");
  other_subscriber.wait_for(lost_too.id().hex());
  remember(database);
  const auto schemas = database.value(
      "SELECT string_agg(quote_ident(nspname), ', ') FROM pg_namespace "
      "WHERE nspname !~ '^pg_' AND nspname NOT IN ('public', 'information_schema')");
  // Others use the tables meanwhile: a deadlock may end the attempt.
  wait_until("the dump to be read", [&] {
    const auto exit =
        run_command({"psql", "-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-d", conninfo_of(folder.path()),
                     "-c", "DROP SCHEMA " + schemas + " CASCADE", "-f", file.string()});
    return exit.code == 0;
  });
  ASSERT_EQ(database.value("SELECT count(*) FROM cn_relay.events_outbox"), "1");
  const auto event = publish_later(node, database);
  subscriber.wait_for(event.id().hex());
  other_subscriber.wait_for(event.id().hex());
  const auto at_other = publish_later(other, database);
  subscriber.wait_for(at_other.id().hex());
  other_subscriber.wait_for(at_other.id().hex());
  // What the database has lost is no duplicate, for neither of them.
  for (const auto& [relay, event_lost] : {std::pair(&node, &lost), std::pair(&other, &lost_too)}) {
    NostrClient client(relay->url());
    EXPECT_TRUE(client.publish(*event_lost).accepted);
    EXPECT_EQ(database.value(fmt::format("SELECT count(*) FROM cn_relay.events WHERE event_id = '{}'",
                                         event_lost->id().hex())),
              "1");
  }
  remember(database);
}

TEST_F(Restore, OfADumpIntoAnotherDatabaseOfTheCluster) {
  RelayProcess node(folder.path());
  publish(node);
  const auto file = dump();
  SqlSession database(conninfo_of(folder.path()));
  write_many(database);
  publish(node);
  remember(database);
  const auto copy = read_into_copy(folder.path(), file);
  const TempFolder other_folder;
  RelayProcess other(other_folder.path(), {}, {"DATABASE_URL=" + copy});
  SqlSession copied(copy);
  publish_later(other, copied);
}

TEST_F(Restore, OfADumpIntoAnotherCluster) {
  std::optional<RelayProcess> node(folder.path());
  publish(*node);
  const auto file = dump();
  {
    SqlSession database(conninfo_of(folder.path()));
    write_many(database);
    publish(*node);
    remember(database);
  }
  stop(*node);
  const TempFolder cluster;
  RelayProcess server(cluster.path());
  const auto copy = read_into_copy(cluster.path(), file);
  const TempFolder other_folder;
  RelayProcess other(other_folder.path(), {}, {"DATABASE_URL=" + copy});
  SqlSession copied(copy);
  publish_later(other, copied);
}

// A standby of a node's database, with a socket of its own.
class Standby {
 public:
  Standby(fs::path cluster, fs::path folder, std::string pg_ctl)
      : cluster_(std::move(cluster)), folder_(std::move(folder)), pg_ctl_(std::move(pg_ctl)) {
    hand_over(cluster_);
    start();
  }
  ~Standby() {
    if (stopped_checkpointer_ != 0) ::kill(stopped_checkpointer_, SIGCONT);
    run_command(as_server_user({pg_ctl_, "stop", "-w", "-m", "immediate", "-D", cluster_.string()}));
  }
  Standby(const Standby&) = delete;
  Standby& operator=(const Standby&) = delete;

  void start() {
    run_well(
        as_server_user({pg_ctl_, "start", "-w", "-D", cluster_.string(), "-l", (folder_ / "log").string(),
                        "-o", "-c listen_addresses='' -c port=5432 -k " + folder_.string()}));
  }
  void stop() { run_well(as_server_user({pg_ctl_, "stop", "-w", "-m", "fast", "-D", cluster_.string()})); }
  // Promotes it and keeps the first checkpoint after that from happening. Without the label of the backup
  // that it was made of, only the timeline tells.
  void promote_without_checkpoint() {
    fs::remove(cluster_ / "backup_label.old");
    SqlSession session(conninfo());
    stopped_checkpointer_ =
        std::stoi(session.value("SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'"));
    ::kill(stopped_checkpointer_, SIGSTOP);
    EXPECT_EQ(session.value("SELECT pg_promote()"), "t");
  }
  [[nodiscard]] std::string conninfo() const {
    return "host=" + folder_.string() + " user=todoke dbname=todoke";
  }

 private:
  fs::path cluster_;
  fs::path folder_;
  std::string pg_ctl_;
  pid_t stopped_checkpointer_ = 0;
};

TEST_F(Restore, ByAPromotedStandbyIsNoticedBeforeAnyCheckpoint) {
  std::optional<RelayProcess> primary(folder.path());
  std::optional<SqlSession> database(conninfo_of(folder.path()));
  const auto pg_ctl = database->value("SELECT setting FROM pg_config WHERE name = 'BINDIR'") + "/pg_ctl";
  if (::geteuid() == 0) {  // the standby follows as the user that it runs as
    std::ofstream(folder.path() / "postgres" / "pg_ident.conf", std::ios::app) << "todoke postgres todoke\n";
    database->run("SELECT pg_reload_conf()");
  }
  for (const auto* passed : {&aside, &folder}) {
    fs::permissions(passed->path(), fs::perms::others_exec, fs::perm_options::add);
  }
  const auto socket_folder = aside.path() / "socket";
  fs::create_directory(socket_folder);
  hand_over(socket_folder);
  Standby standby(base_backup("standby", {"-R"}), socket_folder, pg_ctl);
  const TempFolder relay_folder;
  RelayProcess relay(relay_folder.path(), {},
                     {fmt::format("DATABASE_URL=host={},{} user=todoke dbname=todoke "
                                  "target_session_attrs=read-write",
                                  (folder.path() / "run").string(), socket_folder.string())});
  LiveSubscriber subscriber(relay.url(), kOnlyLive);
  const auto kept = publish(relay);
  wait_until("the standby to have it", [&] {
    return SqlSession(standby.conninfo())
               .value(fmt::format("SELECT count(*) FROM cn_relay.events WHERE event_id = '{}'",
                                  kept.id().hex())) == "1";
  });
  standby.stop();
  write_many(*database);
  const auto lost = publish(relay, "not replicated");
  subscriber.wait_for(lost.id().hex());
  remember(*database);
  database.reset();
  stop(*primary);

  standby.start();
  standby.promote_without_checkpoint();
  relay.process().wait_for_output("the log goes on with later seqs");
  SqlSession promoted(standby.conninfo());
  ASSERT_EQ(promoted.value("SELECT timeline_id FROM pg_control_checkpoint()"), "1");
  const auto event = publish_later(relay, promoted);
  subscriber.wait_for(event.id().hex());
  NostrClient client(relay.url());
  EXPECT_TRUE(client.publish(lost).accepted);
  EXPECT_EQ(promoted.value(
                fmt::format("SELECT count(*) FROM cn_relay.events WHERE event_id = '{}'", lost.id().hex())),
            "1")
      << "taken for a duplicate of what the database has lost";
  ASSERT_EQ(promoted.value("SELECT timeline_id FROM pg_control_checkpoint()"), "1");
}

}  // namespace
}  // namespace todoke::test

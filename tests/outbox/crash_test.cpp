// The same load while the database server itself is killed. On a server of its own, with fsync on.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <random>

#include <fmt/format.h>

#include "consumers.hpp"
#include "harness/run_task.hpp"
#include "instance.hpp"
#include "load.hpp"
#include "pg/embedded.hpp"
#include "pg/migrations.hpp"
#include "support.hpp"

namespace todoke::test {
namespace {

constexpr int kCrashes = 2;

class Server {
 public:
  Server() : supervisor_(loop_.executor(), clock_, board_, registry_) {
    supervisor_.add(postgres_);
    loop_.run(supervisor_.start());
    run_task([this] { return set_up(url()); });
  }
  ~Server() {
    loop_.run(supervisor_.stop());
    std::filesystem::remove_all(folder_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] std::string url() const { return postgres_->connection_string(); }
  // The postmaster with everything, or one backend: the postmaster then throws all others out and recovers.
  void kill(bool everything) {
    std::optional<pid_t> victim;
    if (everything) {
      loop_.call([&] { victim = postgres_->pid(); });
    } else if (const auto pid =
                   Link(url()).run("SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' "
                                   "AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1");
               pid && pid->size() == 1) {
      victim = std::stoi(pid->front());
    }
    if (victim) ::kill(*victim, SIGKILL);
  }

 private:
  static Task<void> set_up(std::string url) {
    pg::ConnectOptions options;
    options.url = std::move(url);
    const auto connection = co_await pg::Connection::connect(options, soon());
    co_await pg::migrate(*connection, pg::embedded_migrations());
    std::string tables =
        "CREATE TABLE effects (n bigserial, consumer text, seq bigint, op text, event_id text, topic_id "
        "text);"
        "INSERT INTO cn_relay.consumer_offsets (consumer, last_seq, updated_at) VALUES ('plain', 0, now())";
    co_await connection->execute_script(std::move(tables), soon());
  }
  static std::filesystem::path make_folder() {
    std::string path = "/tmp/todoke-crash-XXXXXX";
    if (mkdtemp(path.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    return path;
  }
  pg::EmbeddedConfig config() const {
    pg::EmbeddedConfig made;
    made.data_dir = folder_ / "data";
    return made;
  }

  const std::filesystem::path folder_ = make_folder();
  SystemClock clock_;
  HealthBoard board_;
  metrics::Registry registry_;
  net::test::Loop loop_;
  std::shared_ptr<pg::EmbeddedPostgres> postgres_ =
      std::make_shared<pg::EmbeddedPostgres>(loop_.executor(), config());
  Supervisor supervisor_;
};

// Gives it up when it can't be read.
std::vector<std::int64_t> seqs(Link& link, const std::string& statement) {
  std::optional<Rows> rows;
  if (!await([&] { return (rows = link.run(statement)).has_value(); }))
    throw std::runtime_error("no answer: " + statement);
  std::vector<std::int64_t> all;
  for (const auto& row : *rows) all.push_back(std::stoll(row));
  return all;
}

TEST(CrashTest, NothingIsSkippedOrRepeatedWhileTheServerIsKilledAtRandom) {
  const std::uint64_t seed = std::random_device()();
  std::cout << fmt::format("[ seed     ] {}\n", seed);
  Random random(seed);
  Server server;
  const auto url = server.url();
  std::vector<std::unique_ptr<Instance>> instances;
  for (const char* const name : {"records", "records", "counts"}) {
    Recorder::Options options{.wants_events = false};
    if (std::string_view(name) == "counts") options.once = outbox::Once::row;
    instances.push_back(
        std::make_unique<Instance>(url, std::make_shared<Recorder>(name, options), InstanceOptions()));
  }
  Link link(url);
  std::atomic<bool> stop_writing = false;
  std::atomic<bool> stop_reading = false;
  {
    Threads readers;
    readers.add([&] { consume_by_sql(url, "plain", Random(seed + 1), stop_reading); });
    {
      Threads writers;
      const Way ways[] = {Way::table, Way::partition, Way::lock};
      for (int i = 0; i < 3; ++i) {
        writers.add([&, i] {
          write_by_sql(url, ways[i], i, Random(seed + 10 + static_cast<unsigned>(i)), stop_writing);
        });
      }
      for (int crash = 0; crash < kCrashes; ++crash) {
        // Only a server that has got some work done since the last crash is killed again.
        const auto before =
            seqs(link, "SELECT coalesce(max(last_seq), 0) FROM cn_relay.consumer_offsets").at(0);
        EXPECT_TRUE(await([&] {
          const auto now = link.run("SELECT min(last_seq) FROM cn_relay.consumer_offsets");
          return now && now->size() == 1 && std::stoll(now->front()) > before + pick(random, 1, 300);
        }));
        server.kill(crash % 2 == 0);
      }
      stop_writing = true;
    }
    EXPECT_TRUE(await([&] {
      return link.run(
                 "SELECT (SELECT min(last_seq) FROM cn_relay.consumer_offsets) = "
                 "(SELECT max(seq) FROM cn_relay.events_outbox)") == Rows{"t"};
    }));
    stop_reading = true;
  }
  for (auto& each : instances) each->stop();
  const auto log = seqs(link, "SELECT seq FROM cn_relay.events_outbox ORDER BY seq");
  std::cout << fmt::format("[ rows     ] {}\n", log.size());
  for (const char* const name : {"plain", "records", "counts"}) {
    const auto done =
        seqs(link, fmt::format("SELECT seq FROM effects WHERE consumer = '{}' ORDER BY n", name));
    EXPECT_TRUE(done == log) << name << " has " << done.size() << " effects";
  }
  EXPECT_EQ(seqs(link, "SELECT count(*) FROM cn_relay.consumer_dead_letters"),
            (std::vector<std::int64_t>{0}));
}

}  // namespace
}  // namespace todoke::test

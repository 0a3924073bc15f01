// The same load (soak.hpp) while the database server itself is killed. On a server of its own, with fsync on.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>

#include <fmt/format.h>

#include "embedded/postgres.hpp"
#include "harness/run_task.hpp"
#include "pg/migrations.hpp"
#include "soak.hpp"
#include "support.hpp"

namespace todoke::test {
namespace {

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
  }
  static std::filesystem::path make_folder() {
    std::string path = "/tmp/todoke-crash-XXXXXX";
    if (mkdtemp(path.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    return path;
  }
  embedded::Options config() const {
    embedded::Options made;
    made.data_dir = folder_ / "data";
    return made;
  }

  const std::filesystem::path folder_ = make_folder();
  SystemClock clock_;
  HealthBoard board_;
  metrics::Registry registry_;
  net::test::Loop loop_;
  std::shared_ptr<embedded::Postgres> postgres_ =
      std::make_shared<embedded::Postgres>(loop_.executor(), config());
  Supervisor supervisor_;
};

// Only a server that has got some work done since the last crash is killed again.
constexpr std::int64_t kRowsBetweenCrashes = 500;

TEST(CrashTest, NothingIsSkippedOrRepeatedWhileTheServerAndConsumersAreKilledAtRandom) {
  Server server;
  Soak soak(std::make_shared<TestDatabase>(server.url()));
  Link link(server.url() + " application_name=killer");
  int crashes = 0;
  std::int64_t next_crash = 0;
  soak.run([&](Random& random) {
    const auto head = link.run("SELECT coalesce(max(seq), 0) FROM cn_relay.events_outbox");
    if (!head || head->size() != 1) return;
    if (chance(random, 50) || std::stoll(head->front()) < next_crash) return soak.hurt_consumer(random);
    next_crash = std::stoll(head->front()) + kRowsBetweenCrashes;
    server.kill(chance(random, 50));
    ++crashes;
  });
  std::cout << fmt::format("[ crashes  ] {}\n", crashes);
  EXPECT_GT(crashes, 0);
  soak.expect_nothing_was_skipped_or_repeated();
}

}  // namespace
}  // namespace todoke::test

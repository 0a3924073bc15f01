// The eraser by itself: what it tells the part of the relay that follows the log.
#include "relay/eraser.hpp"

#include <mutex>

#include <fmt/format.h>

#include "base/service.hpp"
#include "harness/http_rig.hpp"
#include "pg/pool.hpp"
#include "support.hpp"

namespace todoke::test {
namespace {

// Remembers what it was told.
class Told final : public relay::CommitListener {
 public:
  void lost_effect(const std::vector<relay::Gone>& gone) override {
    remember(fmt::format("lost {}", gone.size()));
  }
  void appended(const relay::Appended& log, std::vector<relay::LiveEventPtr>) override {
    remember("appended");
    head_ = log.head;
  }
  void restored() override { remember("restored"); }
  [[nodiscard]] nostr::Seq head() const override { return head_; }

  [[nodiscard]] std::vector<std::string> all() const {
    const std::lock_guard lock(mutex_);
    return told_;
  }

 private:
  void remember(std::string what) {
    const std::lock_guard lock(mutex_);
    told_.push_back(std::move(what));
  }
  nostr::Seq head_;
  mutable std::mutex mutex_;
  std::vector<std::string> told_;
};

class EraserTest : public testing::Test {
 protected:
  EraserTest() : pool({.connect = connect_options()}, clock, registry), metrics(registry) {
    supervisor.add(
        std::make_shared<relay::Eraser>(loop.executor(), pool, connect_options(), told, clock, metrics));
    loop.run(supervisor.start());
  }
  ~EraserTest() override {
    loop.run(supervisor.stop());
    pool.close();
  }

  [[nodiscard]] pg::ConnectOptions connect_options() const {
    pg::ConnectOptions options;
    options.url = database.url();
    return options;
  }
  // An event of a person who asks to vanish. Until it is gone.
  void erase_one() {
    const auto key = std::string(63, '0') + std::to_string(++people);
    sql.run("BEGIN");
    sql.run("SELECT cn_relay.lock_log()");
    sql.run(
        fmt::format("INSERT INTO cn_relay.events (event_id, pubkey, kind, created_at, tags, content, sig, "
                    "ingested_seq, source, topics) "
                    "VALUES ('{0}', '{0}', 1, 1, '[]', '', '', nextval('cn_relay.events_outbox_seq'), "
                    "'import', '{{kukuri:global}}')",
                    key));
    sql.run("COMMIT");
    sql.run(fmt::format(
        "INSERT INTO cn_relay.vanish_requests (pubkey, request_id, until) VALUES ('{}', '', 2)", key));
    sql.run("UPDATE cn_relay.erase_pass SET rest_until = now()");
    EXPECT_TRUE(await([&] {
      return sql.value("SELECT count(*) FROM cn_relay.vanish_requests WHERE done_at IS NULL") == "0";
    }));
  }

  TestDatabase database;
  SqlSession sql{database.url()};
  ShiftedClock clock;
  metrics::Registry registry;
  HealthBoard board;
  net::test::Loop loop;
  pg::Pool pool;
  relay::RelayMetrics metrics;
  Told told;
  Supervisor supervisor{loop.executor(), clock, board, registry};
  int people = 0;
};

TEST_F(EraserTest, TellsWhatItHasErased) {
  erase_one();
  EXPECT_THAT(told.all(), ElementsAre("lost 1", "appended"));
}

// The first part that locks the log afterwards finds out.
TEST_F(EraserTest, TellsOfARestoreBeforeAnythingThatWasAppendedSince) {
  erase_one();
  sql.run("SELECT cn_relay.move_log()");
  erase_one();
  EXPECT_THAT(told.all(), ElementsAre("lost 1", "appended", "restored", "lost 1", "appended"));
}

}  // namespace
}  // namespace todoke::test

// Eight writers and four consumers at once: nobody skips or repeats an effect. TODOKE_LOG_SECONDS says for
// how long, and
// TODOKE_LOG_SEED repeats the choices of a run.
#include <cstdlib>
#include <iostream>
#include <random>

#include <fmt/format.h>

#include "load.hpp"
#include "outbox/audit.hpp"
#include "support.hpp"

namespace todoke::test {
namespace {

constexpr std::uint64_t kSecondsDefault = 6;

std::uint64_t setting(const char* name, std::uint64_t fallback) {
  const char* value = std::getenv(name);
  return value == nullptr ? fallback : std::strtoull(value, nullptr, 10);
}

class ConcurrencyTest : public LogTest {
 protected:
  ConcurrencyTest() {
    std::cout << fmt::format("[ seed     ] TODOKE_LOG_SEED={}\n", seed_);
    // The log goes from one partition into the next while it is written and read.
    sql.run("SELECT setval('cn_relay.events_outbox_seq', 998500)");
    sql.run("SELECT cn_relay.ensure_partitions(now())");
    add_offset("plain", 0);
  }

  void run(bool kills) {
    RelayRig relay(RigOptions{.flags = {}, .database = db});
    std::vector<std::unique_ptr<Instance>> instances;
    for (const char* const name : {"records", "records", "counts", "small"})
      instances.push_back(instance(name));
    std::atomic<bool> stop_writing = false;
    std::atomic<bool> stop_killing = false;
    std::atomic<bool> stop_reading = false;
    {
      Threads readers;
      readers.add([&] { consume_by_sql(db->url(), "plain", random(100), stop_reading); });
      {
        Threads writers;
        const Way ways[] = {Way::table, Way::table, Way::partition, Way::partition, Way::lock, Way::lock};
        for (int i = 0; i < 6; ++i) {
          writers.add([&, i] { write_by_sql(db->url(), ways[i], i, random(i), stop_writing); });
        }
        for (int i = 6; i < 8; ++i) {
          writers.add([&, i] { write_through_relay(relay.url(), random(i), stop_writing); });
        }
        if (kills) {
          writers.add([&] {
            kill_at_random(db->url(), random(200), stop_killing, [&](Random& r) { hang_one(r, instances); });
          });
        }
        Link(db->url() + " application_name=killer").run(fmt::format("SELECT pg_sleep({})", seconds_));
        stop_writing = true;
        stop_killing = true;
      }
      sql = SqlSession(*db);
      for (const char* const name : {"plain", "records", "counts", "small"}) await_end(name);
      stop_reading = true;
    }
    for (auto& each : instances) each->stop();
    expect_nothing_was_skipped_or_repeated();
  }

 private:
  Random random(int part) const { return Random(seed_ + static_cast<std::uint64_t>(part)); }

  std::unique_ptr<Instance> instance(const std::string& name) {
    Recorder::Options options{.wants_events = false};
    InstanceOptions how;
    how.runner.lease = 600ms;
    if (name == "counts") options.once = outbox::Once::row;
    if (name == "small") {
      how.runner.rows_min = 1;
      how.runner.rows_max = 50;
      how.runner.poll_every = 200ms;
    }
    return std::make_unique<Instance>(*db, std::make_shared<Recorder>(name, options), how);
  }

  // Longer than a lease now and then.
  void hang_one(Random& random, std::vector<std::unique_ptr<Instance>>& instances) {
    auto& one =
        *instances.at(static_cast<std::size_t>(pick(random, 0, static_cast<int>(instances.size()) - 1)));
    one.freeze();
    Link(db->url() + " application_name=killer")
        .run(fmt::format("SELECT pg_sleep({} / 1000.0)", pick(random, 0, 1'000)));
    one.thaw();
  }

  void expect_nothing_was_skipped_or_repeated() {
    const auto rows = log();
    EXPECT_GT(rows.size(), 100U);
    EXPECT_GT(rows.back(), 1'000'000);
    std::cout << fmt::format("[ rows     ] {} from {} to {}\n", rows.size(), rows.front(), rows.back());
    for (const char* const name : {"plain", "records", "counts", "small"}) {
      const auto done = effects(name);
      EXPECT_EQ(done.size(), rows.size()) << name;
      const auto differ = std::mismatch(done.begin(), done.end(), rows.begin(), rows.end());
      EXPECT_TRUE(differ.first == done.end() && differ.second == rows.end())
          << name << ": the effect number " << differ.first - done.begin() << " is another";
      EXPECT_EQ(number(fmt::format(
                    "SELECT count(*) FROM cn_relay.consumer_dead_letters WHERE consumer = '{}'", name)),
                0);
    }
    const auto audited = ask([](pg::Connection& c) { return outbox::audit(c, [](const std::string&) {}); });
    for (const auto& consumer : audited.consumers) {
      EXPECT_THAT(consumer.differences, IsEmpty()) << consumer.name;
      EXPECT_EQ(consumer.keeps_record, consumer.name != "plain");
    }
  }

  const std::uint64_t seed_ = setting("TODOKE_LOG_SEED", std::random_device()());
  const std::uint64_t seconds_ = setting("TODOKE_LOG_SECONDS", kSecondsDefault);
};

TEST_F(ConcurrencyTest, EightWritersAndFourConsumersSkipAndRepeatNothing) {
  run(false);
}

TEST_F(ConcurrencyTest, NorDoTheyWhileConsumersHangAndConnectionsAreKilledAtRandom) {
  run(true);
}

}  // namespace
}  // namespace todoke::test

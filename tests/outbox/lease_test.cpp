// One instance at a time for a name, and what happens when it falls silent.
#include <atomic>
#include <future>
#include <stdexcept>

#include <fmt/format.h>

#include "support.hpp"

namespace todoke::test {
namespace {

class LeaseTest : public LogTest {
 protected:
  InstanceOptions options(std::string name, std::chrono::milliseconds lease = 400ms) {
    InstanceOptions made;
    made.runner.lease = lease;
    made.name = std::move(name);
    return made;
  }
  std::string lease_end() {
    return text("SELECT lease_until FROM cn_relay.consumer_offsets WHERE consumer = 'a'");
  }
  void await_later(const std::string& lease_end_before) {
    await_true(fmt::format("SELECT lease_until > '{}' FROM cn_relay.consumer_offsets WHERE consumer = 'a'",
                           lease_end_before));
  }
  std::int64_t epoch() { return number("SELECT epoch FROM cn_relay.consumer_offsets WHERE consumer = 'a'"); }

  std::shared_ptr<Recorder> first = std::make_shared<Recorder>("a");
  std::shared_ptr<Recorder> second = std::make_shared<Recorder>("a");
};

TEST_F(LeaseTest, OnlyOneOfTwoInstancesWorks) {
  Instance one(*db, first, options("one", 60s));
  append(1);
  await_end("a");
  Instance two(*db, second, options("two", 60s));
  for (int i = 0; i < 20; ++i) {
    append(3);
    await_end("a");
  }
  EXPECT_EQ(effects("a"), numbers(1, 61));
  EXPECT_THAT(second->batches(), IsEmpty());
  EXPECT_EQ(epoch(), 1);
}

TEST_F(LeaseTest, AnInstanceThatStopsGivesTheNameBackAtOnce) {
  append(1);
  auto one = std::make_unique<Instance>(*db, first, options("one", 1h));
  await_end("a");
  Instance two(*db, second, options("two", 1h));
  one->stop();
  append(2);
  await_end("a");
  EXPECT_EQ(effects("a"), numbers(1, 3));
  EXPECT_EQ(epoch(), 2);
}

TEST_F(LeaseTest, AnotherInstanceTakesOverWhenTheLeaseOfASilentOneHasLapsed) {
  append(1);
  Instance one(*db, first, options("one"));
  await_end("a");
  Instance two(*db, second, options("two"));
  one.freeze();
  append(10);
  await_end("a");
  EXPECT_GE(epoch(), 2);
  EXPECT_FALSE(second->batches().empty());
  // What comes back finds its name taken and waits.
  one.thaw();
  append(10);
  await_end("a");
  EXPECT_EQ(effects("a"), numbers(1, 21));
}

TEST_F(LeaseTest, AnIdleHolderRenewsItsLeaseWhenAThirdOfItIsOver) {
  ManualClock clock;
  auto holder = options("one", 1h);
  holder.clock = &clock;
  Instance one(*db, first, holder);
  await_true("SELECT owner IS NOT NULL FROM cn_relay.consumer_offsets WHERE consumer = 'a'");
  for (int i = 0; i < 3; ++i) {
    const auto now = lease_end();
    clock.advance(21min);
    await_later(now);
  }
  EXPECT_EQ(epoch(), 1);
}

TEST_F(LeaseTest, AnInstanceThatFallsSilentInsideABatchCanNotCommitIt) {
  append(5);
  std::promise<void> reached;
  std::promise<void> go_on;
  std::atomic<bool> is_first = true;
  first->after([&](const outbox::Work&) {
    if (!is_first.exchange(false)) return;
    reached.set_value();
    go_on.get_future().wait();
  });
  Instance one(*db, first, options("one"));
  reached.get_future().wait();
  Instance two(*db, second, options("two"));
  await_end("a");
  go_on.set_value();
  append(5);
  await_end("a");
  // Whatever the first one did is over when it has stopped.
  one.stop();
  EXPECT_EQ(effects("a"), numbers(1, 10));
}

TEST_F(LeaseTest, ARaisedEpochKeepsTheBatchThatIsUnderWayFromCommitting) {
  append(5);
  std::atomic<bool> is_first = true;
  first->after([&](const outbox::Work&) {
    if (!is_first.exchange(false)) return;
    SqlSession(db->url()).run(
        "UPDATE cn_relay.consumer_offsets SET epoch = 7, owner = 'somebody', "
        "lease_until = clock_timestamp() + interval '300 ms' WHERE consumer = 'a'");
  });
  Instance one(*db, first, options("one"));
  await_end("a");
  EXPECT_EQ(effects("a"), numbers(1, 5));
  EXPECT_EQ(epoch(), 8);
}

TEST_F(LeaseTest, TheHolderKeepsTheNameAfterItWasFencedOffAgainAndAgain) {
  InstanceOptions alone = options("one", 300ms);
  Instance one(*db, first, alone);
  // Each of these ends one hold and begins another; what is left of the old ones must not end the new one.
  for (int i = 0; i < 20; ++i) {
    append(2);
    sql.run("UPDATE cn_relay.consumer_offsets SET epoch = epoch + 1 WHERE consumer = 'a'");
    one.log().moved();
    await_end("a");
  }
  const auto held = epoch();
  // It outlives several renewals of the lease under the same epoch.
  for (int i = 0; i < 5; ++i) await_later(lease_end());
  EXPECT_EQ(epoch(), held);
  EXPECT_EQ(effects("a"), numbers(1, 40));
}

TEST_F(LeaseTest, AJumpOfTheClockChangesNothing) {
  ManualClock clock;
  auto holder = options("one", 1h);
  holder.clock = &clock;
  Instance one(*db, first, holder);
  append(1);
  await_end("a");
  Instance two(*db, second, options("two", 1h));
  for (const auto jump : {24h, -48h, 12h}) {
    clock.jump(jump);
    const auto now = lease_end();
    clock.advance(21min);
    await_later(now);
    // By the clock of the database, which has not jumped.
    EXPECT_EQ(
        text("SELECT lease_until < clock_timestamp() + interval '61 minutes' FROM cn_relay.consumer_offsets"),
        "t");
    append(2);
    await_end("a");
  }
  EXPECT_EQ(effects("a"), numbers(1, 7));
  EXPECT_THAT(second->batches(), IsEmpty());
  EXPECT_EQ(epoch(), 1);
}

TEST_F(LeaseTest, AnOffsetThatSomebodyDeletedBeginsAnew) {
  append(3);
  Instance one(*db, first, options("one"));
  await_end("a");
  sql.run("DELETE FROM cn_relay.consumer_offsets WHERE consumer = 'a'");
  await_true("SELECT count(*) = 1 FROM cn_relay.consumer_offsets WHERE consumer = 'a' AND last_seq = 3");
  EXPECT_EQ(effects("a"), (Seqs{1, 2, 3, 1, 2, 3}));
}

TEST_F(LeaseTest, AConsumerThatIgnoresItsDeadlineLosesTheNameToAnotherInstance) {
  append(3);
  auto hanging = options("one");
  hanging.runner.batch_max = 1s;
  Instance one(*db, first, hanging);
  await_end("a");
  auto never = std::make_shared<Signal>(one.executor());
  first->wait_for(never);
  append(3);
  ASSERT_TRUE(await([&] { return first->batches().size() > 1; }));
  Instance two(*db, second, options("two"));
  await_end("a");
  EXPECT_GE(epoch(), 2);
  first->wait_for(nullptr);
  never->set_from_anywhere();
  append(3);
  await_end("a");
  one.stop();
  never.reset();
  EXPECT_EQ(effects("a"), numbers(1, 9));
}

// Fails once when it is told to.
class FragileClock : public Clock {
 public:
  [[nodiscard]] SystemTime now() const override { return std::chrono::system_clock::now(); }
  [[nodiscard]] SteadyTime steady() const override {
    if (breaks.exchange(false)) throw std::runtime_error("the clock broke");
    return std::chrono::steady_clock::now();
  }
  mutable std::atomic<bool> breaks{false};
};

TEST_F(LeaseTest, WhenTheLoopThatRenewsTheLeaseDiesTheInstanceTakesItAnew) {
  append(1);
  FragileClock clock;
  auto idle = options("one");
  idle.clock = &clock;
  // Nobody but the loop that renews looks at the clock then.
  idle.runner.poll_every = 1h;
  Instance one(*db, first, idle);
  await_end("a");
  clock.breaks = true;
  await_true("SELECT epoch = 2 FROM cn_relay.consumer_offsets WHERE consumer = 'a'");
  append(2);
  sql.run("NOTIFY cn_relay_outbox");
  await_end("a");
  EXPECT_EQ(effects("a"), numbers(1, 3));
}

}  // namespace
}  // namespace todoke::test

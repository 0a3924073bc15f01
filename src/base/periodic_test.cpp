#include "base/periodic.hpp"

#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace todoke {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

class Rounds final : public PeriodicService {
 public:
  Rounds(const Executor& executor, PeriodicOptions options, metrics::Registry& registry)
      : PeriodicService(executor, std::move(options), registry) {}
  using PeriodicService::pause;
  using PeriodicService::wake_up;

  std::vector<RoundCause> causes;
  std::function<Task<void>()> work;

 private:
  Task<void> round(RoundCause cause) override {
    causes.push_back(cause);
    co_await work();
  }
};

class PeriodicTest : public testing::Test {
 protected:
  void make(std::chrono::milliseconds every, bool at_once = false) {
    rounds = std::make_unique<Rounds>(io.get_executor(), PeriodicOptions{"rounds", "failed", every, at_once},
                                      registry);
    asio::co_spawn(io, rounds->run(), [this](const std::exception_ptr& failure) {
      EXPECT_FALSE(failure);
      ended = true;
    });
  }
  void stop_after(std::size_t count) {
    rounds->work = [this, count]() -> Task<void> {
      if (rounds->causes.size() == count) rounds->stop();
      co_return;
    };
  }

  asio::io_context io;
  metrics::Registry registry;
  std::unique_ptr<Rounds> rounds;
  bool ended = false;
};

TEST_F(PeriodicTest, ComesAgainAfterEachInterval) {
  make(1ms);
  stop_after(3);
  io.run();
  EXPECT_THAT(rounds->causes, ElementsAre(RoundCause::time, RoundCause::time, RoundCause::time));
}

TEST_F(PeriodicTest, FirstRoundCanComeAtOnce) {
  make(24h, true);
  stop_after(1);
  io.run();
  EXPECT_THAT(rounds->causes, ElementsAre(RoundCause::time));
}

TEST_F(PeriodicTest, WokenFromAnotherThreadItDoesNotWait) {
  make(24h);
  stop_after(1);
  io.poll();
  EXPECT_THAT(rounds->causes, IsEmpty());
  std::thread([&] { rounds->wake_up(); }).join();
  io.restart();
  io.run();
  EXPECT_THAT(rounds->causes, ElementsAre(RoundCause::woken));
}

TEST_F(PeriodicTest, WakeUpDuringARoundLeadsToAnother) {
  make(24h, true);
  rounds->work = [&]() -> Task<void> {
    if (rounds->causes.size() == 2) rounds->stop();
    rounds->wake_up();
    co_await rounds->pause(1ms);
  };
  io.run();
  EXPECT_THAT(rounds->causes, ElementsAre(RoundCause::time, RoundCause::woken));
}

TEST_F(PeriodicTest, FailedRoundIsCountedAndRepeated) {
  make(1ms);
  rounds->work = [&]() -> Task<void> {
    if (rounds->causes.size() < 3) throw std::runtime_error("not now");
    rounds->stop();
    co_return;
  };
  io.run();
  EXPECT_TRUE(ended);
  EXPECT_EQ(rounds->causes.size(), 3U);
  EXPECT_EQ(registry
                .counters("todoke_rounds_failed_total",
                          "Rounds of services that poll which failed; they are repeated.", {"service"})
                .with({"rounds"})
                .value(),
            2U);
}

TEST_F(PeriodicTest, StopEndsTheWaitAndThePauseAtOnce) {
  make(24h);
  io.poll();
  rounds->stop();
  io.restart();
  io.run();
  EXPECT_TRUE(ended);
  EXPECT_THAT(rounds->causes, IsEmpty());

  ended = false;
  make(24h, true);
  rounds->work = [&]() -> Task<void> { co_await rounds->pause(24h); };
  io.restart();
  io.poll();
  EXPECT_FALSE(ended);
  rounds->stop();
  io.restart();
  io.run();
  EXPECT_TRUE(ended);
}

TEST_F(PeriodicTest, StoppedBeforeItRunsItDoesNothing) {
  make(24h, true);
  rounds->stop();
  io.run();
  EXPECT_TRUE(ended);
  EXPECT_THAT(rounds->causes, IsEmpty());
}

}  // namespace
}  // namespace todoke

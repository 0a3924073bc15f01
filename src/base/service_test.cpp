#include "base/service.hpp"

#include <deque>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.hpp"

namespace todoke {
namespace {

// A service whose next runs are scripted: true runs until stop, false dies.
class Scripted final : public Service {
 public:
  Scripted(std::string name, std::deque<std::string> script, const Executor& executor,
           std::vector<std::string>& journal)
      : started(executor),
        name_(std::move(name)),
        script_(std::move(script)),
        stop_(executor),
        journal_(journal) {}

  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] Expected<void> validate() const override {
    if (script_.front() == "invalid") return refuse("wrong");
    return {};
  }
  Task<void> start() override {
    step_ = script_.front();
    if (script_.size() > 1) script_.pop_front();
    if (step_ == "no start") throw std::runtime_error("can't start");
    if (step_ == "user error") throw UserError("mend this first");
    journal_.push_back("start " + name_);
    started.set();
    co_return;
  }
  Task<void> run() override {
    if (step_ == "die") throw std::runtime_error("died");
    co_await stop_.wait();
    journal_.push_back("end " + name_);
  }
  void stop() override { stop_.set(); }

  Signal started;

 private:
  std::string name_;
  std::deque<std::string> script_;
  std::string step_;
  Signal stop_;
  std::vector<std::string>& journal_;
};

struct Fixture : testing::Test {
  asio::io_context io;
  HealthBoard board;
  metrics::Registry registry;
  std::vector<std::string> journal;
  ManualClock clock;
  Supervisor supervisor{io.get_executor(), clock, board, registry};
  log::Capture quiet{[](std::string_view) {}};

  std::shared_ptr<Scripted> add(const std::string& name, std::deque<std::string> script) {
    auto service = std::make_shared<Scripted>(name, std::move(script), io.get_executor(), journal);
    supervisor.add(service);
    return service;
  }

  std::exception_ptr run(Task<void> task) {
    std::exception_ptr failure;
    asio::co_spawn(io, std::move(task), [&](std::exception_ptr error) {
      failure = std::move(error);
      io.stop();
    });
    io.restart();
    io.run_for(std::chrono::seconds(30));
    return failure;
  }
};

TEST_F(Fixture, StartsInOrderAndStopsInTheOppositeOrder) {
  add("a", {"run"});
  add("b", {"run"});
  ASSERT_FALSE(run(supervisor.start()));
  EXPECT_EQ(board.overall(), HealthState::up);
  ASSERT_FALSE(run(supervisor.stop()));
  EXPECT_THAT(journal, testing::ElementsAre("start a", "start b", "end b", "end a"));
}

TEST_F(Fixture, WhatLetsWorkInStopsFirst) {
  supervisor.add(
      std::make_shared<Scripted>("door", std::deque<std::string>{"run"}, io.get_executor(), journal), true);
  add("a", {"run"});
  ASSERT_FALSE(run(supervisor.start()));
  ASSERT_FALSE(run(supervisor.stop()));
  EXPECT_THAT(journal, testing::ElementsAre("start door", "start a", "end door", "end a"));
}

TEST_F(Fixture, AServiceThatDiesIsStartedAgainAndCounted) {
  const auto a = add("a", {"die", "no start", "run"});
  ASSERT_FALSE(run(supervisor.start()));
  a->started.reset();
  ASSERT_FALSE(run(a->started.wait()));
  EXPECT_THAT(journal, testing::ElementsAre("start a", "start a"));
  EXPECT_THAT(registry.render(), testing::HasSubstr("todoke_service_restarts_total{service=\"a\"} 2\n"));
  ASSERT_FALSE(run(supervisor.stop()));
}

TEST_F(Fixture, AnInvalidServiceIsToldBeforeAnythingRuns) {
  add("a", {"run"});
  add("b", {"invalid"});
  EXPECT_THROW(supervisor.validate(), UserError);
  EXPECT_TRUE(journal.empty());
}

TEST_F(Fixture, WhatThePersonMustMendEndsTheStart) {
  add("a", {"user error"});
  EXPECT_EQ(describe(run(supervisor.start())), "mend this first");
  EXPECT_EQ(board.overall(), HealthState::down);
  ASSERT_FALSE(run(supervisor.stop()));
}

TEST_F(Fixture, StopEndsAServiceThatWaitsForItsNextStart) {
  add("a", {"no start"});
  asio::co_spawn(io, supervisor.start(), asio::detached);
  ASSERT_FALSE(run(supervisor.stop()));
}

TEST_F(Fixture, InterruptEndsAStartThatDoesNotComeToItsEnd) {
  add("a", {"no start"});
  add("b", {"run"});
  asio::post(io, [&] { supervisor.interrupt(); });
  ASSERT_FALSE(run(supervisor.start()));
  ASSERT_FALSE(run(supervisor.stop()));
  EXPECT_TRUE(journal.empty()) << "what comes after it was not started";
}

TEST(HealthBoard, AnEssentialLineThatIsDownMakesTheWholeDown) {
  HealthBoard board;
  board.report("a", true, {HealthState::up, {}});
  board.report("b", false, {HealthState::down, "no"});
  EXPECT_EQ(board.overall(), HealthState::degraded);
  board.report("a", true, {HealthState::down, "no"});
  EXPECT_EQ(board.overall(), HealthState::down);
  board.forget("a");
  board.forget("b");
  EXPECT_EQ(board.overall(), HealthState::up);
}

}  // namespace
}  // namespace todoke

#include "outbox/log_signal.hpp"

#include <atomic>
#include <future>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

namespace todoke::outbox {
namespace {

TEST(LogSignal, EverySubscriberIsTold) {
  LogSignal log;
  int first = 0;
  int second = 0;
  log.moved();
  const auto one = log.subscribe([&] { ++first; });
  log.moved();
  const auto two = log.subscribe([&] { ++second; });
  log.moved();
  EXPECT_EQ(first, 2);
  EXPECT_EQ(second, 1);
}

TEST(LogSignal, NobodyIsToldWhoseSubscriptionWasDropped) {
  LogSignal log;
  int calls = 0;
  auto subscription = log.subscribe([&] { ++calls; });
  log.moved();
  subscription = {};
  log.moved();
  EXPECT_EQ(calls, 1);
}

TEST(LogSignal, ASubscriptionMayOutliveIt) {
  std::optional<LogSignal> log(std::in_place);
  const auto subscription = log->subscribe([] {});
  log.reset();
}

TEST(LogSignal, DroppingASubscriptionWaitsForItsCallbackOnAnotherThread) {
  LogSignal log;
  std::promise<void> entered;
  std::promise<void> leave;
  std::atomic<bool> is_over = false;
  auto subscription = log.subscribe([&] {
    entered.set_value();
    leave.get_future().wait();
    is_over = true;
  });
  std::thread mover([&] { log.moved(); });
  entered.get_future().wait();
  std::thread opener([&] { leave.set_value(); });
  subscription = {};
  EXPECT_TRUE(is_over);
  mover.join();
  opener.join();
}

TEST(LogSignal, SubscribersComeAndGoWhileItMoves) {
  LogSignal log;
  std::atomic<bool> stop = false;
  std::thread mover([&] {
    while (!stop) log.moved();
  });
  for (int i = 0; i < 200; ++i) {
    auto calls = std::make_unique<std::atomic<int>>(0);
    auto subscription = log.subscribe([at = calls.get()] { ++*at; });
    while (*calls == 0) std::this_thread::yield();
    subscription = {};
    calls.reset();  // nobody touches it any more
  }
  stop = true;
  mover.join();
}

}  // namespace
}  // namespace todoke::outbox

#include "base/async.hpp"

#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

namespace todoke {
namespace {

Task<void> wait_and_count(Signal& signal, int& woken) {
  co_await signal.wait();
  ++woken;
}

TEST(Signal, WakesEverybodyWhoWaits) {
  asio::io_context io;
  Signal signal(io.get_executor());
  int woken = 0;
  for (int i = 0; i < 3; ++i) asio::co_spawn(io, wait_and_count(signal, woken), asio::detached);
  io.poll();
  EXPECT_EQ(woken, 0);
  signal.set();
  io.restart();
  io.poll();
  EXPECT_EQ(woken, 3);
}

TEST(Signal, CanBeSetFromAnotherThread) {
  asio::io_context io;
  Signal signal(io.get_executor());
  int woken = 0;
  asio::co_spawn(io, wait_and_count(signal, woken), asio::detached);
  std::thread other([&] { signal.set_from_anywhere(); });
  io.run_for(std::chrono::seconds(30));
  other.join();
  EXPECT_EQ(woken, 1);
}

Task<void> wait_briefly(Signal& signal, std::chrono::milliseconds limit, int& answer) {
  const bool set = co_await signal.wait_for(limit);
  answer = set ? 1 : 0;
}

TEST(Signal, WaitForTellsWhetherTheTimeWasUp) {
  asio::io_context io;
  Signal signal(io.get_executor());
  int answer = -1;
  asio::co_spawn(io, wait_briefly(signal, std::chrono::milliseconds(1), answer), asio::detached);
  io.run();
  EXPECT_EQ(answer, 0);
  signal.set();
  asio::co_spawn(io, wait_briefly(signal, std::chrono::hours(1), answer), asio::detached);
  io.restart();
  io.run_for(std::chrono::seconds(30));
  EXPECT_EQ(answer, 1);
}

Task<void> ask_where(std::thread::id& inside, std::thread::id& after) {
  co_await run_blocking([&] { inside = std::this_thread::get_id(); });
  after = std::this_thread::get_id();
}

TEST(RunBlocking, RunsElsewhereAndComesBack) {
  asio::io_context io;
  std::thread::id inside;
  std::thread::id after;
  asio::co_spawn(io, ask_where(inside, after), asio::detached);
  io.run();
  wait_for_blocking_calls();
  EXPECT_NE(inside, std::this_thread::get_id());
  EXPECT_EQ(after, std::this_thread::get_id());
}

Task<void> fail_blocking() {
  co_await run_blocking([] { throw std::runtime_error("inside"); });
}

TEST(RunBlocking, PassesOnWhatWasThrown) {
  asio::io_context io;
  std::exception_ptr failure;
  asio::co_spawn(io, fail_blocking(), [&](std::exception_ptr error) { failure = std::move(error); });
  io.run();
  wait_for_blocking_calls();
  EXPECT_THROW(std::rethrow_exception(failure), std::runtime_error);
}

}  // namespace
}  // namespace todoke

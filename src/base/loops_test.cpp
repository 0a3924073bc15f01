#include "base/loops.hpp"

#include <stdexcept>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/log.hpp"

namespace todoke {
namespace {

struct LoopsTest : testing::Test {
  asio::io_context io;
  Signal stop{io.get_executor()};
  Signal die{io.get_executor()};
  int asked_to_end = 0;
  int returned = 0;
  Loops loops{io.get_executor(), "test", [this] {
                ++asked_to_end;
                stop.set();
              }};
  log::Capture quiet{[](std::string_view) {}};

  Task<void> until_stopped() {
    co_await stop.wait();
    ++returned;
  }
  Task<void> until_death(std::string what) {
    co_await die.wait();
    throw std::runtime_error(what);
  }
  // What join() threw; empty: nothing.
  std::string join() {
    std::string thrown = "still running";
    asio::co_spawn(io, loops.join(),
                   [&](const std::exception_ptr& failure) { thrown = failure ? describe(failure) : ""; });
    io.restart();
    io.run_for(std::chrono::seconds(30));
    return thrown;
  }
};

TEST_F(LoopsTest, OneThatDiesEndsTheOthersAndIsThrown) {
  loops.launch("a", until_stopped());
  loops.launch("b", until_death("b died"));
  loops.launch("c", until_stopped());
  EXPECT_EQ(loops.running(), 3U);
  die.set();
  EXPECT_EQ(join(), "b died");
  EXPECT_EQ(returned, 2);
  EXPECT_EQ(loops.running(), 0U);
}

TEST_F(LoopsTest, TheFirstDeathIsToldAndTheOthersAreAskedOnce) {
  loops.launch("a", until_death("first"));
  loops.launch("b", until_death("second"));
  die.set();
  EXPECT_EQ(join(), "first");
  EXPECT_EQ(asked_to_end, 1);
}

TEST_F(LoopsTest, OneThatReturnsEndsNobody) {
  loops.launch("a", until_stopped());
  stop.set();
  EXPECT_EQ(join(), "");
  EXPECT_EQ(asked_to_end, 0);
}

TEST_F(LoopsTest, CanBeUsedAgainAfterADeath) {
  loops.launch("a", until_death("once"));
  die.set();
  EXPECT_EQ(join(), "once");
  stop.reset();
  EXPECT_FALSE(loops.has_failed());
  loops.launch("a", until_stopped());
  stop.set();
  EXPECT_EQ(join(), "");
}

}  // namespace
}  // namespace todoke

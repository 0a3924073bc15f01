#include "base/attempt.hpp"

#include <stdexcept>
#include <string>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace todoke {
namespace {

Task<std::string> say(std::string text) {
  if (text.empty()) throw std::runtime_error("nothing to say");
  co_return text;
}

Task<void> fail() {
  co_await sleep_for(std::chrono::nanoseconds(0));
  throw std::runtime_error("failed later");
}

TEST(Attempt, GivesTheValueOrWhatWasThrown) {
  asio::io_context io;
  std::string seen;
  const auto task = [&]() -> Task<void> {
    const auto good = co_await attempt(say("yes"));
    const auto bad = co_await attempt(say(""));
    const auto later = co_await attempt(fail());
    EXPECT_TRUE(is_a<std::exception>(later.error()));
    EXPECT_FALSE(is_a<std::logic_error>(later.error()));
    seen = good.value() + ", " + describe(bad.error()) + ", " + describe(later.error());
    const auto nothing = co_await attempt(sleep_for(std::chrono::nanoseconds(0)));
    EXPECT_TRUE(nothing.has_value());
  };
  asio::co_spawn(io, task(), asio::detached);
  io.run();
  EXPECT_EQ(seen, "yes, nothing to say, failed later");
}

}  // namespace
}  // namespace todoke

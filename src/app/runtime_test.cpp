#include "app/runtime.hpp"

#include <array>
#include <pthread.h>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/run_on.hpp"

namespace todoke::app {
namespace {

Task<std::string> name_of_thread() {
  std::array<char, 16> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  co_return name.data();
}

TEST(Runtime, EveryLoopHasAThreadOfItsName) {
  Runtime runtime(2);
  std::vector<std::string> names;
  runtime.run([](Runtime& loops, std::vector<std::string>& told) -> Task<void> {
    std::vector<Executor> executors{loops.relay(), loops.consumers(), loops.reads()};
    for (auto& loop : loops.connections()) executors.push_back(loop);
    executors.push_back(loops.door());
    for (auto& loop : executors) told.push_back(co_await run_on(loop, name_of_thread()));
  }(runtime, names));
  EXPECT_THAT(names,
              testing::ElementsAre("relay", "consumers", "reads", "connections", "connections", "door"));
}

TEST(Runtime, PublicConnectionsAndTheirReadsShareNoLoopWithAnybody) {
  Runtime runtime(2);
  std::vector<Executor> loops{runtime.main(), runtime.relay(), runtime.consumers(), runtime.reads(),
                              runtime.door()};
  for (const auto& connections : runtime.connections()) loops.push_back(connections);
  ASSERT_EQ(loops.size(), 7U);
  for (std::size_t i = 0; i < loops.size(); ++i) {
    for (std::size_t j = i + 1; j < loops.size(); ++j) EXPECT_NE(loops[i], loops[j]) << i << " and " << j;
  }
}

}  // namespace
}  // namespace todoke::app

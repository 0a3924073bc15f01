#include "app/runtime.hpp"

#include <array>
#include <pthread.h>
#include <string>
#include <vector>

#include <gmock/gmock.h>

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
    for (auto& loop : executors) told.push_back(co_await run_on(loop, name_of_thread()));
  }(runtime, names));
  EXPECT_THAT(names, testing::ElementsAre("relay", "consumers", "reads", "connections", "connections"));
}

}  // namespace
}  // namespace todoke::app

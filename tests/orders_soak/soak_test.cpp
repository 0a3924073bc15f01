// A dozen runs, or TODOKE_SOAK_RUNS. TODOKE_TEST_SEED=n repeats one. TODOKE_SOAK_MUTANT ends with the first
// run that breaks a property; a mutant that only keeps the faults from their places has broken none.
#include <cstdlib>
#include <iostream>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "run.hpp"

namespace todoke::test {
namespace {

constexpr std::uint64_t kRunsDefault = 12;
// What fits a name of a database, and a person's memory.
constexpr std::uint32_t kSeedMax = 1'000'000'000;

std::uint64_t setting(const char* name, std::uint64_t fallback) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? fallback : std::strtoull(value, nullptr, 10);
}

TEST(OrdersSoak, EveryOrderIsSettledOnceWhateverDiesWhenever) {
  const bool repeats = std::getenv("TODOKE_TEST_SEED") != nullptr;
  const auto first = setting("TODOKE_TEST_SEED", std::random_device()() % kSeedMax);
  const auto runs = repeats ? 1 : setting("TODOKE_SOAK_RUNS", kRunsDefault);
  SoakServer server;
  Reached reached;
  const bool is_mutant = std::getenv("TODOKE_SOAK_MUTANT") != nullptr;
  for (auto seed = first; seed < first + runs && !(is_mutant && HasFailure()); ++seed) {
    const auto began = std::chrono::steady_clock::now();
    std::cout << fmt::format("[ seed     ] TODOKE_TEST_SEED={}\n", seed) << std::flush;
    SoakRun run(server, seed);
    run.play();
    const auto problems = run.problems();
    const auto took = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    std::cout << fmt::format("[ {:4.1f} s   ] {}\n", took, run.story()) << std::flush;
    EXPECT_EQ(problems, "") << "TODOKE_TEST_SEED=" << seed;
    if (!is_mutant) {
      EXPECT_EQ(run.missed(), "") << "TODOKE_TEST_SEED=" << seed;
    }
    for (const auto& [place, count] : run.reached()) reached[place] += count;
  }
  std::string table;
  for (const auto& place : places()) {
    table += fmt::format(" {}: {}", place, reached[place]);
    if (!repeats && !is_mutant && runs >= kKillPoints && !HasFailure()) {
      EXPECT_GT(reached[place], 0) << place << " was never reached";
    }
  }
  std::cout << "[ reached  ]" << table << "\n";
}

}  // namespace
}  // namespace todoke::test

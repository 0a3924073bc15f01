// What the compiler and the linker have put into the binary that is shipped.
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/todoke_process.hpp"

namespace todoke::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

std::string readelf(const std::string& options) {
  const auto exit = run_command({"sh", "-c", "readelf -W " + options + " " + todoke_binary()});
  EXPECT_EQ(exit.code, 0) << exit.err;
  return exit.out;
}

TEST(ShippedBinary, LoadsAnywhereAndIsReadOnlyOnceItIsLinked) {
  EXPECT_THAT(readelf("-h"), ContainsRegex("Type: +DYN")) << "position independent";
  const auto segments = readelf("-l");
  EXPECT_THAT(segments, HasSubstr("GNU_RELRO"));
  EXPECT_THAT(segments, ContainsRegex("GNU_STACK.* RW "));
  EXPECT_THAT(segments, Not(ContainsRegex("LOAD.* RWE "))) << "nothing is written and run";
  const auto dynamic = readelf("-d");
  EXPECT_THAT(dynamic, HasSubstr("NOW")) << "full RELRO";
  EXPECT_THAT(dynamic, ContainsRegex("FLAGS_1.*PIE"));
}

TEST(ShippedBinary, ChecksItsMemoryWhileItRuns) {
  const auto symbols = readelf("--dyn-syms");
  EXPECT_THAT(symbols, HasSubstr("__stack_chk_fail"));
  EXPECT_THAT(symbols, HasSubstr("_chk@")) << "_FORTIFY_SOURCE";
  EXPECT_THAT(symbols, HasSubstr("__glibcxx_assert_fail")) << "_GLIBCXX_ASSERTIONS";
}

// Neither leaves a mark that the linker keeps; the compiler notes how it was called beside the debug
// information.
TEST(ShippedBinary, EveryUnitIsCompiledWithAGuardedStackAndGuardedJumps) {
  const auto units =
      run_command({"sh", "-c", "readelf -W -p .debug_str " + todoke_binary() + " | grep 'GNU C++20'"}).out;
  ASSERT_THAT(units, HasSubstr("GNU C++20"));
  std::istringstream lines(units);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_THAT(line, HasSubstr("-fstack-clash-protection"));
#ifdef __x86_64__
    EXPECT_THAT(line, HasSubstr("-fcf-protection=full"));
#endif
  }
}

}  // namespace
}  // namespace todoke::test

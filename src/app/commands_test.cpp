#include "app/commands.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/keys.hpp"

namespace todoke::app {
namespace {

using testing::HasSubstr;

std::string output_of(const std::vector<std::string>& words, int code) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_program(words), code);
  return testing::internal::GetCapturedStdout() + "|" + testing::internal::GetCapturedStderr();
}

TEST(CommandsTest, EveryCommandStandsInTheTableUnderItsName) {
  EXPECT_EQ(commands().size(), 11U);
  for (const auto& [name, command] : commands()) {
    EXPECT_EQ(name, command.name);
    EXPECT_FALSE(command.summary.empty()) << name;
    EXPECT_TRUE(command.run) << name;
  }
}

TEST(CommandsTest, NoOptionOfACommandHidesAKey) {
  for (const auto& [name, command] : commands()) {
    for (const auto& option : command.options) {
      EXPECT_EQ(schema().find(option.name), nullptr) << name << " --" << option.name;
      EXPECT_TRUE(option.letter == '\0' || option.value.empty()) << name << " --" << option.name;
    }
  }
}

TEST(CommandsTest, HelpNamesEveryCommand) {
  const auto text = output_of({"help"}, 0);
  for (const auto& [name, command] : commands()) EXPECT_THAT(text, HasSubstr(std::string(command.summary)));
  EXPECT_EQ(output_of({"--help"}, 0), text);
}

TEST(CommandsTest, HelpOfOneCommandIsTheSameBothWays) {
  EXPECT_THAT(output_of({"help", "topic"}, 0), HasSubstr("Usage: todoke topic "));
  EXPECT_EQ(output_of({"topic", "--help"}, 0), output_of({"help", "topic"}, 0));
}

TEST(CommandsTest, NothingToDoIsWrongUse) {
  EXPECT_THAT(output_of({}, 2), testing::StartsWith("|todoke: what it accepts"));
}

TEST(CommandsTest, WrongUseEndsWithTwoAndSaysWhereHelpIs) {
  EXPECT_EQ(output_of({"nothing"}, 2), "|todoke: 'nothing' is no command; `todoke help` lists them\n");
  EXPECT_EQ(output_of({"version", "--nothing"}, 2),
            "|todoke: --nothing: no such option or key; see `todoke version --help`\n");
}

TEST(CommandsTest, AFailureEndsWithOne) {
  EXPECT_THAT(output_of({"run", "--roles", "nobody"}, 1), HasSubstr("'nobody' is no role of this build"));
}

TEST(CommandsTest, TheVersionIsTheSameBothWays) {
  const auto text = output_of({"version"}, 0);
  EXPECT_THAT(text, testing::StartsWith("todoke "));
  EXPECT_EQ(output_of({"--version"}, 0), text);
}

}  // namespace
}  // namespace todoke::app

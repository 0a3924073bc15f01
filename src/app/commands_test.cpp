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
  EXPECT_EQ(commands().size(), 25U);
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

TEST(CommandsTest, OptionsAndWordsThatWouldBePassedOverAreWrongUse) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"orders", "halt", "--status", "pending", "--limit", "3"}, "orders halt takes no --limit"},
      {{"orders", "stats", "--instrument", "EURUSD"}, "orders stats takes no --instrument"},
      {{"orders", "list", "--force"}, "orders list takes no --force (it is for: release, abort, settle)"},
      {{"orders", "requeue", "key-1", "--status", "failed"}, "name one order or give a filter, not both"},
      {{"orders", "requeue", "key-1", "--limit", "3"}, "name one order or give a filter, not both"},
      {{"consumers", "pause", "index-v1", "--no-wait"}, "consumers pause takes no --no-wait"},
      {{"consumers", "show", "index-v1", "more"}, "consumers show: name one consumer"},
      {{"topic", "list", "--policy", "{}"}, "topic list takes no --policy"},
      {{"config", "set", "relay.name", "x", "--json"}, "config set takes no --json"},
      {{"config", "history", "--short"}, "config history takes no --short"},
      {{"config", "relay.name", "--markdown"}, "--markdown is the page of all keys"},
  };
  for (const auto& [words, text] : cases) EXPECT_THAT(output_of(words, 2), HasSubstr(text));
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

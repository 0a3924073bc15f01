#include "app/command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/keys.hpp"

namespace todoke::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::ThrowsMessage;

Command sample_command() {
  return {.name = "sample",
          .summary = "does a thing",
          .synopsis = "[WORD]",
          .options = {{"limit", "N", "how many"},
                      {"quiet", "", "say less", {}, 'q'},
                      {"force", "", "even so", {"drop", "clear"}}},
          .words_max = 2,
          .run = [](const Arguments&) { return 0; }};
}

Arguments parse(const std::vector<std::string>& given) {
  return parse_arguments(sample_command(), schema(), given);
}

TEST(CommandLineTest, WordsOptionsAndKeysAreToldApart) {
  const auto arguments =
      parse({"list", "--limit", "5", "--quiet", "--log.level=debug", "--config", "a.toml", "more"});
  EXPECT_THAT(arguments.words, ElementsAre("list", "more"));
  EXPECT_THAT(arguments.options, ElementsAre(Pair("limit", "5"), Pair("quiet", "")));
  EXPECT_THAT(arguments.keys, ElementsAre(Pair("log.level", "debug")));
  EXPECT_EQ(arguments.config_file, "a.toml");
  EXPECT_FALSE(arguments.help);
}

TEST(CommandLineTest, TextIsUtf8) {
  EXPECT_THAT(parse({"届け"}).words, ElementsAre("届け"));
}

TEST(CommandLineTest, AnOptionThatWasNotGivenHasNoValue) {
  const auto arguments = parse({"--limit=5"});
  EXPECT_EQ(arguments.option("limit"), "5");
  EXPECT_EQ(arguments.option("quiet"), std::nullopt);
  EXPECT_FALSE(arguments.has("quiet"));
}

TEST(CommandLineTest, TheLastOfAnOptionWinsAndKeysKeepTheirOrder) {
  const auto arguments = parse({"--limit=1", "--limit=2", "--log.level=info", "--log.level=error"});
  EXPECT_EQ(arguments.option("limit"), "2");
  EXPECT_THAT(arguments.keys, ElementsAre(Pair("log.level", "info"), Pair("log.level", "error")));
}

TEST(CommandLineTest, ALetterStandsForItsSwitch) {
  EXPECT_TRUE(parse({"-q"}).has("quiet"));
  EXPECT_THAT(parse({"-l"}).words, ElementsAre("-l"));
}

TEST(CommandLineTest, AValueMayBeEmptyOrHoldAnEqualsSign) {
  EXPECT_EQ(parse({"--limit="}).option("limit"), "");
  EXPECT_EQ(parse({"--limit=a=b"}).option("limit"), "a=b");
}

TEST(CommandLineTest, WrongUseIsRefusedWithTheWord) {
  const auto refused = [](const std::vector<std::string>& given, const char* text) {
    EXPECT_THAT([&] { parse(given); }, ThrowsMessage<UsageError>(HasSubstr(text)));
  };
  refused({"--nothing", "1"}, "--nothing: no such option or key");
  refused({"--limit"}, "--limit needs a value");
  refused({"--log.level"}, "--log.level needs a value");
  refused({"--quiet=yes"}, "--quiet takes no value");
  refused({"a", "b", "c"}, "'c' is one word too many");
  refused({"a", "bad\xff"}, "'bad\\xff' is not UTF-8");
  refused({"--limit", "\xc3"}, "'\\xc3' is not UTF-8");
  refused({"--relay.name=\xed\xa0\x80"}, "is not UTF-8");
}

TEST(CommandLineTest, AnOptionOfAnotherSubcommandIsRefused) {
  EXPECT_TRUE(parse({"drop", "--force"}).has("force"));
  EXPECT_THAT([] { parse({"list", "--force", "--quiet"}); },
              ThrowsMessage<UsageError>("sample list takes no --force (it is for: drop, clear)"));
  EXPECT_THAT(help_text(sample_command()), HasSubstr("even so (drop, clear)"));
}

TEST(CommandLineTest, HelpIsGivenWhateverElseIsThere) {
  EXPECT_TRUE(parse({"a", "b", "c", "-h"}).help);
  EXPECT_THAT(help_text(sample_command()), HasSubstr("-q, --quiet"));
}

TEST(CommandLineTest, ACommandThatPassesItsArgumentsOnReadsOnlyTheKeysBeforeThem) {
  auto command = sample_command();
  command.passes_arguments_on = true;
  const auto arguments = parse_arguments(
      command, schema(), {"--data_dir", "/d", "--config", "c", "-c", "--limit", "--data_dir"});
  EXPECT_THAT(arguments.keys, ElementsAre(Pair("data_dir", "/d")));
  EXPECT_EQ(arguments.config_file, "c");
  EXPECT_THAT(arguments.words, ElementsAre("-c", "--limit", "--data_dir"));
  EXPECT_THAT(arguments.options, IsEmpty());
}

TEST(CommandLineTest, ACommandThatPassesItsArgumentsOnHasHelpOfItsOwnWhenAskedForThatAlone) {
  auto command = sample_command();
  command.passes_arguments_on = true;
  EXPECT_TRUE(parse_arguments(command, schema(), {"--help"}).help);
  EXPECT_FALSE(parse_arguments(command, schema(), {"-c", "--help"}).help);
}

TEST(CommandTest, ATimeIsAMomentADayOrUnixSeconds) {
  const auto seconds = [](const std::string& text) {
    Arguments arguments;
    arguments.options["since"] = text;
    return std::chrono::duration_cast<std::chrono::seconds>(
               time_option(arguments, "since").value().time_since_epoch())
        .count();
  };
  EXPECT_EQ(seconds("2026-01-31T12:00:00Z"), 1'769'860'800);
  EXPECT_EQ(seconds("2026-01-31T21:00:00+09:00"), 1'769'860'800);
  EXPECT_EQ(seconds("2026-01-31"), 1'769'817'600);
  EXPECT_EQ(seconds("1769817600"), 1'769'817'600);
  EXPECT_EQ(time_option(Arguments(), "since"), std::nullopt);
  for (const auto* text : {"yesterday", "", "2026-01", "2026-02-30", "99999999999999"}) {
    EXPECT_THROW(seconds(text), UsageError) << text;
  }
}

TEST(CommandTest, TheAuditNamesTheOperator) {
  EXPECT_THAT(operator_name(), testing::MatchesRegex("operator:.+"));
}

}  // namespace
}  // namespace todoke::app

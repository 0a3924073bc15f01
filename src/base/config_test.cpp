#include "base/config.hpp"

#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace todoke {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr Key<std::string> kListen{
    {.name = "server.listen", .type = KeyType::address, .fallback = "127.0.0.1:7447", .meaning = "m"}};
constexpr Key<std::int64_t> kCount{
    {.name = "server.count", .type = KeyType::integer, .fallback = "5", .meaning = "m", .min = 1, .max = 9}};
constexpr Key<std::chrono::milliseconds> kWait{{.name = "server.wait",
                                                .type = KeyType::duration,
                                                .fallback = "5s",
                                                .meaning = "m",
                                                .unit = "s",
                                                .min = 1000,
                                                .max = 60'000}};
constexpr Key<std::int64_t> kBytes{
    {.name = "limits.bytes", .type = KeyType::size, .fallback = "64KiB", .meaning = "m", .min = 1}};
constexpr Key<bool> kFlag{{.name = "flag", .type = KeyType::boolean, .fallback = "off", .meaning = "m"}};
constexpr Key<std::string> kRates{
    {.name = "limits.rates", .type = KeyType::choice, .fallback = "on", .meaning = "m", .choices = "on|off"}};
constexpr Key<std::string> kUrl{{.name = "database.url",
                                 .type = KeyType::text,
                                 .fallback = "",
                                 .meaning = "m",
                                 .secret = true,
                                 .environment = "DATABASE_URL"}};
constexpr Key<std::vector<std::string>> kList{
    {.name = "server.names", .type = KeyType::list, .fallback = "", .meaning = "m"}};

const Schema& schema() {
  static const Schema instance = [] {
    static constexpr const KeySpec* kKeys[] = {&kListen.spec, &kCount.spec, &kWait.spec, &kBytes.spec,
                                               &kFlag.spec,   &kRates.spec, &kUrl.spec,  &kList.spec};
    static constexpr RemovedKey kRemoved[] = {{"server.colour", "it is red for everybody"}};
    Schema s;
    s.add(kKeys);
    s.add_removed(kRemoved);
    return s;
  }();
  return instance;
}

std::string refusal_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(Config, ForgottenSecretIsAsIfItHadNeverBeenSet) {
  Config config(schema());
  config.set_flag("database.url", "host=db password=hidden");
  config.forget("database.url");
  EXPECT_EQ(config.get(kUrl), "");
  EXPECT_TRUE(config.is_default("database.url"));
  EXPECT_TRUE(config.changed_in(Config(schema())).empty());
}

TEST(Config, StartsWithTheDefaults) {
  const Config config(schema());
  EXPECT_EQ(config.get(kListen), "127.0.0.1:7447");
  EXPECT_EQ(config.get(kCount), 5);
  EXPECT_EQ(config.get(kWait), 5s);
  EXPECT_EQ(config.get(kBytes), 65536);
  EXPECT_FALSE(config.get(kFlag));
  EXPECT_TRUE(config.get(kList).empty());
  EXPECT_EQ(config.setting("server.count").source, "default");
}

TEST(Config, LayersWinInTheirOrderWhateverTheOrderOfLoading) {
  Config config(schema());
  config.set_flag("server.listen", "[::1]:3");
  config.load_environment(
      std::vector<std::string>{"TODOKE_SERVER_LISTEN=127.0.0.1:2", "TODOKE_SERVER_COUNT=7"});
  config.load_toml("[server]\nlisten = '127.0.0.1:1'\ncount = 6\nwait = '9s'\n", "t.toml");
  EXPECT_EQ(config.get(kListen), "[::1]:3");
  EXPECT_EQ(config.setting("server.listen").source, "--server.listen");
  EXPECT_EQ(config.get(kCount), 7);
  EXPECT_EQ(config.setting("server.count").source, "TODOKE_SERVER_COUNT");
  EXPECT_EQ(config.get(kWait), 9s);
  EXPECT_EQ(config.setting("server.wait").source, "t.toml:4");
}

TEST(Config, TheProjectsOwnVariableWinsOverTheSecondName) {
  Config config(schema());
  config.load_environment(std::vector<std::string>{"TODOKE_DATABASE_URL=own", "DATABASE_URL=other"});
  EXPECT_EQ(config.get(kUrl), "own");
}

TEST(Config, AnUnknownKeyNamesFileLineAndKey) {
  Config config(schema());
  const auto text = refusal_of([&] { config.load_toml("[server]\ncount = 2\nlistne = 'x'\n", "t.toml"); });
  EXPECT_THAT(text, HasSubstr("t.toml:3"));
  EXPECT_THAT(text, HasSubstr("server.listne"));
  EXPECT_THAT(
      refusal_of([&] { config.load_environment(std::vector<std::string>{"TODOKE_SERVER_LISTNE=x"}); }),
      HasSubstr("TODOKE_SERVER_LISTNE"));
  EXPECT_THAT(refusal_of([&] { config.set_flag("nope", "1"); }), HasSubstr("--nope"));
}

TEST(Config, AValueOutOfRangeOrOfTheWrongTypeSaysWhatIsAllowed) {
  Config config(schema());
  const auto range = refusal_of([&] { config.load_toml("server.count = 10", "t.toml"); });
  EXPECT_THAT(range, HasSubstr("t.toml:1"));
  EXPECT_THAT(range, HasSubstr("1 to 9"));
  EXPECT_THAT(refusal_of([&] { config.load_toml("server.count = '5'", "t.toml"); }), HasSubstr("wrong type"));
  EXPECT_THAT(refusal_of([&] { config.load_toml("server.count = 5.5", "t.toml"); }), HasSubstr("wrong type"));
  EXPECT_THAT(refusal_of([&] { config.set_flag("limits.rates", "perhaps"); }), HasSubstr("one of on off"));
  EXPECT_THAT(refusal_of([&] { config.set_flag("server.listen", "7447"); }), HasSubstr("host:port"));
  EXPECT_THAT(refusal_of([&] { config.set_flag("server.names", "good,bad\xff"); }), HasSubstr("not UTF-8"));
  EXPECT_THAT(refusal_of([&] { config.set_flag("server.listen", "h:70000"); }), HasSubstr("host:port"));
  EXPECT_THAT(refusal_of([&] { config.set_flag("server.wait", "61s"); }), HasSubstr("1s to 1m"));
  EXPECT_THAT(refusal_of([&] { config.set_flag("limits.bytes", "99999999999GiB"); }), HasSubstr("size"));
}

TEST(Config, TomlThatDoesNotParseNamesTheLine) {
  Config config(schema());
  EXPECT_THAT(refusal_of([&] { config.load_toml("a = 1\nb = = 2\n", "t.toml"); }), HasSubstr("t.toml:2"));
}

TEST(Config, DurationsAndSizesTakeUnits) {
  Config config(schema());
  config.set_flag("server.wait", "1500ms");
  EXPECT_EQ(config.get(kWait), 1500ms);
  config.set_flag("server.wait", "30");
  EXPECT_EQ(config.get(kWait), 30s) << "a bare number counts in the key's unit";
  config.set_flag("server.wait", "2.5");
  EXPECT_EQ(config.get(kWait), 2500ms) << "a fraction that is a whole number of milliseconds";
  config.set_flag("server.wait", "0.5m");
  EXPECT_EQ(config.get(kWait), 30s);
  for (const auto* wrong : {"1.", ".", "1.2.3", "1.-5", "2.0005"}) {
    EXPECT_THROW(config.set_flag("server.wait", wrong), UserError) << wrong;
  }
  config.load_toml("[server]\nwait = 1.5\n", "t.toml");
  config.set_flag("limits.bytes", "2MiB");
  EXPECT_EQ(config.get(kBytes), 2 * 1024 * 1024);
  EXPECT_EQ(config.shown("limits.bytes"), "2MiB");
  EXPECT_EQ(config.shown("server.wait"), "30s");
}

TEST(Config, ListsComeAsTomlArraysOrWithCommas) {
  Config config(schema());
  config.load_toml("server.names = ['a', 'b']", "t.toml");
  EXPECT_EQ(config.get(kList), (std::vector<std::string>{"a", "b"}));
  config.load_environment(std::vector<std::string>{"TODOKE_SERVER_NAMES=[\"x\", y]"});
  EXPECT_EQ(config.get(kList), (std::vector<std::string>{"x", "y"}));
}

TEST(Config, ASecretComesFromAFileAndIsNeverShown) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("todoke_config_test." + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const auto path = folder / "secret";
  std::ofstream(path) << "postgres://u:pw@h/d\n";

  Config by_environment(schema());
  by_environment.load_environment(std::vector<std::string>{"DATABASE_URL_FILE=" + path.string()});
  EXPECT_EQ(by_environment.get(kUrl), "postgres://u:pw@h/d");
  EXPECT_EQ(by_environment.shown("database.url"), "********");

  std::ofstream(folder / "t.toml") << "[database]\nurl_file = 'secret'\n";
  Config by_file(schema());
  by_file.load_file((folder / "t.toml").string());
  EXPECT_EQ(by_file.get(kUrl), "postgres://u:pw@h/d")
      << "a relative path counts from the folder of the TOML file";

  const auto text =
      refusal_of([&] { by_file.load_environment(std::vector<std::string>{"DATABASE_URL_FILE=/nowhere/x"}); });
  EXPECT_THAT(text, HasSubstr("/nowhere/x"));
  std::filesystem::remove_all(folder);
}

TEST(Config, OnlySecretsHaveAFileForm) {
  Config config(schema());
  EXPECT_THAT(refusal_of([&] { config.load_toml("server.listen_file = 'x'", "t.toml"); }),
              HasSubstr("no such key"));
}

TEST(Config, ARemovedKeyIsPassedOverInEveryLayerAndToldWithItsSource) {
  Config config(schema());
  config.load_toml("[server]\ncount = 6\ncolour = ['any', 'type']\n", "t.toml");
  config.load_environment(std::vector<std::string>{"TODOKE_SERVER_COLOUR=blue"});
  config.set_flag("server.colour", "green");
  EXPECT_TRUE(config.set_database("server.colour", "grey", "database (server, version 1)"));
  std::vector<std::pair<Layer, std::string>> told;
  for (const auto& removed : config.removed_settings()) told.emplace_back(removed.layer, removed.text);
  const std::string rest = "server.colour is no longer a key and has no effect: it is red for everybody";
  EXPECT_THAT(told,
              testing::ElementsAre(testing::Pair(Layer::file, "t.toml:3: " + rest),
                                   testing::Pair(Layer::environment, "TODOKE_SERVER_COLOUR: " + rest),
                                   testing::Pair(Layer::flag, "--server.colour: " + rest),
                                   testing::Pair(Layer::database, "database (server, version 1): " + rest)));
  EXPECT_EQ(config.get(kCount), 6) << "its neighbours are in force";
  EXPECT_TRUE(schema().accepts("server.colour"));
  EXPECT_EQ(schema().find("server.colour"), nullptr);
}

TEST(Config, AKeyCanNotBeRemovedAndThereAtOnce) {
  static constexpr const KeySpec* kKeys[] = {&kCount.spec};
  static constexpr RemovedKey kRemoved[] = {{"server.count", "it is 5"}};
  Schema s;
  s.add(kKeys);
  EXPECT_THROW(s.add_removed(kRemoved), std::logic_error);
}

TEST(Config, ThePageTellsEveryKey) {
  const auto page = configuration_page(schema());
  for (const auto& [name, spec] : schema().keys()) {
    EXPECT_THAT(page, HasSubstr("### `" + std::string(name) + "`"));
    EXPECT_THAT(page, HasSubstr(environment_name(name)));
  }
}

TEST(Config, AWrongDefaultIsAProgrammingError) {
  static constexpr KeySpec kBad{.name = "x", .type = KeyType::integer, .fallback = "many", .meaning = "m"};
  static constexpr const KeySpec* kKeys[] = {&kBad};
  Schema s;
  EXPECT_THROW(s.add(kKeys), std::logic_error);
}

}  // namespace
}  // namespace todoke

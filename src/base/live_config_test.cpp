#include "base/live_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace todoke {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Key<std::string> kName{
    {.name = "relay.name", .type = KeyType::text, .fallback = "n", .live = true}};
constexpr Key<std::int64_t> kLow{
    {.name = "relay.low", .type = KeyType::integer, .fallback = "1", .min = 0, .max = 100, .live = true}};
constexpr Key<std::int64_t> kHigh{
    {.name = "limits.high", .type = KeyType::integer, .fallback = "9", .min = 0, .max = 100, .live = true}};
constexpr Key<std::int64_t> kThreads{{.name = "relay.threads", .type = KeyType::integer, .fallback = "1"}};
constexpr Key<std::int64_t> kLease{
    {.name = "outbox.lease", .type = KeyType::integer, .fallback = "1", .reread = true}};
constexpr Key<std::string> kSecret{{.name = "relay.secret", .type = KeyType::text, .secret = true}};

Expected<void> check(const Config& config) {
  if (config.get(kLow) <= config.get(kHigh)) return {};
  return refuse("relay.low is over limits.high");
}

const Schema& live_schema() {
  static const Schema instance = [] {
    static constexpr const KeySpec* kKeys[] = {&kName.spec,    &kLow.spec,   &kHigh.spec,
                                               &kThreads.spec, &kLease.spec, &kSecret.spec};
    Schema s;
    s.add(kKeys, check);
    static constexpr RemovedKey kRemoved[] = {{"relay.colour", "it is red for everybody"}};
    s.add_removed(kRemoved);
    return s;
  }();
  return instance;
}

Config file(const std::string& toml) {
  Config config(live_schema());
  config.load_toml(toml, "t.toml");
  return config;
}

ConfigRow relay(std::int64_t version, std::map<std::string, std::string, std::less<>> values) {
  return {"relay", version, std::move(values)};
}
ConfigRow limits(std::int64_t version, std::map<std::string, std::string, std::less<>> values) {
  return {"limits", version, std::move(values)};
}

TEST(LiveConfig, RowsLieOverTheFileAndUnderTheEnvironment) {
  auto base = file("[relay]\nname = 'file'\nlow = 2\n[limits]\nhigh = 50\n");
  base.load_environment(std::vector<std::string>{"TODOKE_LIMITS_HIGH=60"});
  LiveConfig live(base);
  live.set_rows({relay(3, {{"relay.name", "db"}}), limits(1, {{"limits.high", "70"}})});
  EXPECT_EQ(live.config().get(kName), "db");
  EXPECT_EQ(live.config().setting("relay.name").source, "database (relay, version 3)");
  EXPECT_EQ(live.config().get(kLow), 2);
  EXPECT_EQ(live.config().get(kHigh), 60);
  EXPECT_TRUE(live.config().is_pinned("limits.high"));
  EXPECT_THAT(live.problems(), IsEmpty());
  EXPECT_THAT(live.hidden(), ElementsAre("limits.high = 70 of the database: pinned by TODOKE_LIMITS_HIGH",
                                         "relay.name = file of t.toml:2: the database says db"));
  live.set_rows({});
  EXPECT_EQ(live.config().get(kName), "file");
  EXPECT_THAT(live.hidden(), IsEmpty());
}

TEST(LiveConfig, ReadersAreCalledOnceForEachChange) {
  LiveConfig live{Config(live_schema())};
  std::vector<std::string> names;
  live.on_change([&](const Config& config) { names.push_back(config.get(kName)); });
  live.set_rows({relay(1, {{"relay.name", "a"}})});
  live.set_rows({relay(2, {{"relay.name", "a"}})});
  live.set_rows({relay(3, {{"relay.name", "b"}})});
  EXPECT_THAT(names, ElementsAre("a", "b"));
}

TEST(LiveConfig, AKeyThatIsRefusedKeepsItsLastGoodValueAndTheOthersAreTaken) {
  LiveConfig live{Config(live_schema())};
  live.set_rows({relay(1, {{"relay.low", "5"}, {"relay.name", "a"}})});
  live.set_rows({relay(2, {{"relay.low", "many"}, {"relay.name", "b"}})});
  EXPECT_EQ(live.config().get(kLow), 5);
  EXPECT_EQ(live.config().get(kName), "b");
  ASSERT_EQ(live.problems().size(), 1U);
  EXPECT_THAT(live.problems()[0], HasSubstr("database (relay, version 2): relay.low can't be 'many'"));
  live.set_rows({relay(3, {{"relay.low", "6"}, {"relay.name", "b"}})});
  EXPECT_EQ(live.config().get(kLow), 6);
  EXPECT_THAT(live.problems(), IsEmpty());
}

TEST(LiveConfig, KeysThatTheDatabaseMayNotSetAreRefused) {
  LiveConfig live{Config(live_schema())};
  live.set_rows(
      {relay(1, {{"limits.high", "1"}, {"relay.nmae", "a"}, {"relay.secret", "s"}, {"relay.threads", "4"}})});
  EXPECT_THAT(live.problems(),
              ElementsAre(HasSubstr("limits.high is no key of relay"), HasSubstr("relay.nmae: no such key"),
                          HasSubstr("relay.secret is a secret"), HasSubstr("relay.threads is not live")));
  EXPECT_EQ(live.config().get(kThreads), 1);
  EXPECT_EQ(live.config().get(kSecret), "");
  EXPECT_EQ(live.config().get(kHigh), 9);
}

TEST(LiveConfig, RowsThatContradictEachOtherLeaveOutTheOneThatDoesNotFit) {
  LiveConfig live{Config(live_schema())};
  live.set_rows({relay(1, {{"relay.low", "5"}})});
  live.set_rows({relay(2, {{"relay.low", "20"}, {"relay.name", "b"}}), limits(1, {{"limits.high", "10"}})});
  EXPECT_EQ(live.config().get(kHigh), 10);
  EXPECT_EQ(live.config().get(kLow), 5) << "the last good row";
  EXPECT_EQ(live.config().get(kName), "n");
  EXPECT_THAT(live.problems(), ElementsAre("database (relay, version 2): relay.low is over limits.high"));
  // Together they fit.
  live.set_rows({relay(2, {{"relay.low", "20"}, {"relay.name", "b"}}), limits(2, {{"limits.high", "30"}})});
  EXPECT_EQ(live.config().get(kLow), 20);
  EXPECT_THAT(live.problems(), IsEmpty());
}

TEST(LiveConfig, AFileReadAgainChangesWhatMayChangeAndNothingElse) {
  LiveConfig live(file("[relay]\nname = 'a'\nthreads = 2\n[outbox]\nlease = 3\n"));
  int calls = 0;
  live.on_change([&](const Config&) { ++calls; });
  ASSERT_TRUE(live.set_base(file("[relay]\nname = 'b'\nthreads = 4\n[outbox]\nlease = 5\n")));
  EXPECT_EQ(live.config().get(kName), "b");
  EXPECT_EQ(live.config().get(kLease), 5);
  EXPECT_EQ(live.config().get(kThreads), 2);
  EXPECT_EQ(calls, 1);
  const auto refused = live.set_base(file("[relay]\nname = 'c'\nlow = 50\n"));
  EXPECT_EQ(refused.error().message, "relay.low is over limits.high");
  EXPECT_EQ(live.config().get(kName), "b");
  EXPECT_EQ(calls, 1);
}

TEST(LiveConfig, ARemovedKeyInARowIsNoProblemAndHidesNothing) {
  LiveConfig live{Config(live_schema())};
  live.set_rows({relay(4, {{"relay.colour", "blue"}, {"relay.name", "a"}})});
  EXPECT_EQ(live.config().get(kName), "a");
  EXPECT_THAT(live.problems(), IsEmpty());
  EXPECT_THAT(live.hidden(), IsEmpty());
  ASSERT_EQ(live.config().removed_settings().size(), 1U);
  EXPECT_THAT(live.config().removed_settings()[0].text,
              HasSubstr("database (relay, version 4): relay.colour is no longer a key"));
  live.set_rows({relay(5, {{"relay.name", "a"}})});
  EXPECT_THAT(live.config().removed_settings(), IsEmpty());
}

TEST(LiveConfig, AFileReadAgainTellsWhichRemovedKeysItStillSets) {
  LiveConfig live(file("relay.colour = 'blue'\n"));
  EXPECT_EQ(live.config().removed_settings().size(), 1U);
  ASSERT_TRUE(live.set_base(file("relay.name = 'a'\n")));
  EXPECT_THAT(live.config().removed_settings(), IsEmpty());
}

TEST(LiveConfig, ThousandsOfWrongKeysAreToldByTheFirstOfThem) {
  LiveConfig live{Config(live_schema())};
  ConfigRow row{"relay", 1, {}};
  for (int i = 0; i < 2'000; ++i) row.values.emplace("relay.x" + std::to_string(i), "");
  live.set_rows({row});
  EXPECT_EQ(live.problems().size(), 20U);
}

}  // namespace
}  // namespace todoke

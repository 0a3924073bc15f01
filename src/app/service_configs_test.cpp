#include "admin/service_configs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/keys.hpp"

namespace todoke::app {
namespace {

using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

const std::vector<ConfigRow> kRows{{"log", 3, {{"log.level", "debug"}}}, {"relay", 2, {}}};

TEST(ServiceConfigsTest, ANewRowBeginsWithTheLiveKeysOfTheFile) {
  Config config(schema());
  config.load_toml("data_dir = \"/d\"\n[relay]\nname = \"of the file\"\n[log]\nformat = \"json\"\n",
                   "t.toml");
  config.set_flag("relay.contact", "of a flag");
  const auto seeds = admin::service_config_seeds(config);
  EXPECT_THAT(seeds.at("relay"), UnorderedElementsAre(Pair("relay.name", "of the file")));
  EXPECT_TRUE(seeds.at("log").empty());
  EXPECT_FALSE(seeds.contains("data_dir"));
}

TEST(ServiceConfigsTest, EveryServiceWithLiveKeysGetsARow) {
  const auto seeds = admin::service_config_seeds(Config(schema()));
  for (const auto& [name, spec] : schema().keys()) {
    EXPECT_TRUE(!spec->live || seeds.contains(std::string(service_of(name)))) << name;
  }
}

TEST(ServiceConfigsTest, WhatIsStoredComesWithTheVersionOfItsService) {
  EXPECT_EQ(admin::stored_value(kRows, "log.level").value, "debug");
  EXPECT_EQ(admin::stored_value(kRows, "log.level").version, 3);
  EXPECT_EQ(admin::stored_value(kRows, "relay.name").value, std::nullopt);
  EXPECT_EQ(admin::stored_value(kRows, "relay.name").version, 2);
  EXPECT_EQ(admin::stored_value(kRows, "auth.mode").version, 0);
}

TEST(ServiceConfigsTest, AKeyInTheRowOfAnotherServiceIsFoundThere) {
  const std::vector<ConfigRow> rows{{"log", 3, {{"nosuch", "x"}}}, {"relay", 2, {}}};
  EXPECT_EQ(admin::stored_value(rows, "nosuch", true).service, "log");
  EXPECT_EQ(admin::stored_value(rows, "nosuch", true).version, 3);
  EXPECT_EQ(admin::stored_value(rows, "nosuch").value, std::nullopt);
  EXPECT_EQ(admin::stored_value(rows, "relay.name", true).service, "relay");
  const auto trial = admin::check_config_change(Config(schema()), rows, "nosuch", std::nullopt);
  EXPECT_THAT(trial.problems, testing::IsEmpty());
}

TEST(ServiceConfigsTest, AChangeThatBreaksARuleIsRefusedInTheWordsOfTheRule) {
  Config config(schema());
  config.load_toml("[relay]\nlimit_max = 1000\n", "t.toml");
  EXPECT_THAT(
      [&] { admin::check_config_change(config, kRows, "relay.limit_default", "4000"); },
      testing::ThrowsMessage<UserError>("relay.limit_default (4000) must be at most relay.limit_max (1000)"));
  EXPECT_NO_THROW(admin::check_config_change(config, kRows, "log.retention", "5d"));
  EXPECT_THAT([&] { admin::check_config_change(config, kRows, "log.retention_max", "1d"); },
              testing::ThrowsMessage<UserError>(HasSubstr("must be at least")));
}

TEST(ServiceConfigsTest, ARowThatIsRefusedAlreadyCanBeMendedStepByStep) {
  const Config config(schema());
  const std::vector<ConfigRow> broken{{"log", 1, {{"log.retention_max", "1d"}, {"log.level", "no level"}}}};
  EXPECT_NO_THROW(admin::check_config_change(config, broken, "log.level", "info"));
  EXPECT_NO_THROW(admin::check_config_change(config, broken, "log.retention_max", std::nullopt));
}

}  // namespace
}  // namespace todoke::app

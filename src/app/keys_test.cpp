#include "app/keys.hpp"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace todoke::app {
namespace {

TEST(SchemaTest, EveryKeyHasAMeaningAndADefaultThatItAccepts) {
  EXPECT_GT(schema().keys().size(), 100U);
  for (const auto& [name, spec] : schema().keys()) {
    EXPECT_FALSE(spec->meaning.empty()) << name;
    const auto value = parse_value(*spec, spec->fallback);
    EXPECT_TRUE(value) << name << ": " << (value ? "" : value.error().message);
  }
}

TEST(SchemaTest, TheDefaultsTogetherAreAConfigurationThatStarts) {
  const auto checked = Config(schema()).check();
  EXPECT_TRUE(checked) << checked.error().message;
}

TEST(SchemaTest, EveryVariableStandsForOneKey) {
  std::set<std::string> variables;
  for (const auto& [name, spec] : schema().keys()) {
    EXPECT_TRUE(variables.insert(environment_name(name)).second) << name;
    if (!spec->environment.empty()) {
      EXPECT_TRUE(variables.insert(std::string(spec->environment)).second) << name;
    }
  }
}

TEST(SchemaTest, ALiveKeyIsNoSecretBecauseTheDatabaseKeepsItsHistory) {
  for (const auto& [name, spec] : schema().keys()) EXPECT_FALSE(spec->live && spec->secret) << name;
}

}  // namespace
}  // namespace todoke::app

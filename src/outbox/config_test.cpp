#include "outbox/config.hpp"

#include <gtest/gtest.h>

namespace todoke::outbox {
namespace {

std::string refusal_of(std::initializer_list<std::pair<std::string_view, std::string_view>> flags) {
  Schema schema;
  schema.add(config_keys(), check_config);
  Config config(schema);
  for (const auto& [key, value] : flags) config.set_flag(key, value);
  const auto checked = config.check();
  return checked ? std::string() : checked.error().message;
}

TEST(LogConfig, DefaultsAreAllowed) {
  EXPECT_EQ(refusal_of({}), "");
}

TEST(LogConfig, TimesThatContradictEachOtherAreRefused) {
  EXPECT_EQ(refusal_of({{"log.retention", "2h"}, {"log.retention_max", "1h"}}),
            "log.retention_max (1h) must be at least log.retention (2h)");
}

}  // namespace
}  // namespace todoke::outbox

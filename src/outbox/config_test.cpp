#include "outbox/config.hpp"

#include <gtest/gtest.h>

#include "base/test_support.hpp"

namespace todoke::outbox {
namespace {

std::string refusal_of(const todoke::test::Flags& flags) {
  return todoke::test::refusal_of(config_keys(), check_config, flags);
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

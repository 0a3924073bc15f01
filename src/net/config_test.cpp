#include "net/config.hpp"

#include <gtest/gtest.h>

namespace todoke::net {
namespace {

struct NetConfig : testing::Test {
  Schema schema;
  NetConfig() { schema.add(config_keys()); }
};

TEST_F(NetConfig, DefaultsOfKeysAreThoseOfTheServer) {
  const Config config(schema);
  const auto limits = limits_from(config);
  const ServerLimits own;
  EXPECT_EQ(limits.connections_max, own.connections_max);
  EXPECT_EQ(limits.drain_timeout, own.drain_timeout);
}

TEST_F(NetConfig, EveryKeyCanBeSetAndIsChecked) {
  Config config(schema);
  config.set_flag("server.connections_max", "5");
  config.set_flag("server.drain_timeout", "250ms");
  EXPECT_EQ(limits_from(config).connections_max, 5U);
  EXPECT_EQ(limits_from(config).drain_timeout, std::chrono::milliseconds(250));
  EXPECT_THROW(config.set_flag("server.connections_max", "0"), UserError);
  EXPECT_THROW(config.set_flag("limits.rates", "maybe"), UserError);
}

TEST_F(NetConfig, ZeroIoThreadsMeansOneForEveryTwoCores) {
  Config config(schema);
  EXPECT_EQ(io_threads_from(config, 1), 1U);
  EXPECT_EQ(io_threads_from(config, 8), 4U);
  config.set_flag("server.io_threads", "3");
  EXPECT_EQ(io_threads_from(config, 8), 3U);
}

}  // namespace
}  // namespace todoke::net

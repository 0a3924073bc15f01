#include "app/exposure.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/keys.hpp"

namespace todoke::app {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Settings = std::vector<std::pair<std::string, std::string>>;

const std::vector<std::string> kOrders{"orders", "relay"};
const std::vector<std::string> kNoOrders{"index", "relay"};
const std::pair<std::string, std::string> kOpen{"server.listen", "0.0.0.0:7447"};

Config config_with(const Settings& settings) {
  Config config(schema());
  for (const auto& [key, value] : settings) config.set_flag(key, value);
  return config;
}

std::string refusal(const Settings& settings, const std::vector<std::string>& roles) {
  const auto checked = check_exposure(config_with(settings), roles);
  return checked ? "" : checked.error().message;
}

TEST(Exposure, OrdersFromEverybodyAreRefusedAndBothWaysOutAreNamed) {
  for (const auto* listen : {"0.0.0.0:7447", "[::]:7447", "10.1.2.3:7447", "relay.example.org:7447"}) {
    EXPECT_THAT(refusal({{"server.listen", listen}}, kOrders),
                AllOf(HasSubstr(listen), HasSubstr("orders.tokens_file"),
                      HasSubstr("orders.allow_anonymous = true")));
  }
}

TEST(Exposure, TokensALoopbackAddressAnotherRoleOrTheKeyAreEnough) {
  EXPECT_EQ(refusal({kOpen, {"orders.tokens_file", "/etc/todoke/tokens"}}, kOrders), "");
  EXPECT_EQ(refusal({kOpen, {"orders.allow_anonymous", "true"}}, kOrders), "");
  EXPECT_EQ(refusal({kOpen}, kNoOrders), "");
  EXPECT_EQ(refusal({}, kOrders), "");
  EXPECT_EQ(refusal({{"server.listen", "[::1]:7447"}}, kOrders), "");
}

TEST(Exposure, UpTakesThePaperBrokerOnlyAndNamesRun) {
  EXPECT_TRUE(check_broker_of_up(config_with({})));
  for (const auto* broker : {"http", "fix", "noop"}) {
    const auto checked = check_broker_of_up(config_with({{"broker.adapter", broker}}));
    ASSERT_FALSE(checked) << broker;
    EXPECT_THAT(checked.error().message, AllOf(HasSubstr(broker), HasSubstr("`todoke run`")));
  }
}

TEST(Exposure, WhatIsAllowedAndRiskyIsWarnedOf) {
  EXPECT_THAT(exposure_warnings(config_with({}), kOrders), IsEmpty());
  EXPECT_THAT(exposure_warnings(config_with({{"server.internal_listen", "0.0.0.0:7448"}}), kNoOrders),
              ElementsAre(HasSubstr("server.internal_listen is 0.0.0.0:7448")));
  EXPECT_THAT(exposure_warnings(config_with({kOpen, {"orders.allow_anonymous", "true"}}), kOrders),
              ElementsAre(HasSubstr("orders.allow_anonymous")));
}

TEST(Exposure, ListenersAnswerForTheNamesThatAreConfigured) {
  const auto loopback =
      config_with({{"server.hosts", "relay.lan"}, {"relay.public_url", "wss://relay.example.org:8443"}});
  for (const auto& rule : {public_hosts(loopback), internal_hosts(loopback)}) {
    for (const auto* host : {"localhost:7447", "relay.lan", "relay.example.org"})
      EXPECT_TRUE(rule.allows(host)) << host;
    EXPECT_FALSE(rule.allows("evil.example"));
  }
  EXPECT_FALSE(public_hosts(config_with({})).allows("evil.example"));
}

TEST(Exposure, AnOpenListenerChecksNamesOnceItHasOne) {
  EXPECT_TRUE(public_hosts(config_with({kOpen})).allows("evil.example"))
      << "nobody has said what it is called";
  const auto named = public_hosts(config_with({kOpen, {"relay.public_url", "wss://relay.example.org"}}));
  EXPECT_FALSE(named.allows("evil.example"));
  EXPECT_TRUE(named.allows("10.1.2.3:7447")) << "a probe";
  EXPECT_TRUE(
      internal_hosts(config_with({{"server.internal_listen", "0.0.0.0:7448"}, {"server.hosts", "a.example"}}))
          .allows("metrics.example"));
}

}  // namespace
}  // namespace todoke::app

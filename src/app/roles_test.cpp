#include "app/roles.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace todoke::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

TEST(RolesTest, RolesStandInTheOrderOfTheirNames) {
  EXPECT_THAT(all_roles(), ElementsAre("admin", "index", "orders", "relay", "users"));
  EXPECT_EQ(find_role("orders")->name, "orders");
  EXPECT_EQ(find_role("order"), nullptr);
}

TEST(RolesTest, AListOfRolesKeepsItsOrderAndNamesEachOnce) {
  EXPECT_THAT(parse_roles("relay,index,relay"), ElementsAre("relay", "index"));
  EXPECT_THAT(parse_roles("none"), IsEmpty());
}

TEST(RolesTest, WhatPublishesIsBuiltAfterTheRelay) {
  std::vector<std::string_view> built;
  for (const auto* role : build_order({"users", "index", "relay"})) built.push_back(role->name);
  EXPECT_THAT(built, ElementsAre("index", "relay", "users"));
  EXPECT_THROW(build_order({"nobody"}), std::invalid_argument);
}

TEST(RolesTest, ARoleThatDoesNotExistIsRefusedWithThoseThatDo) {
  EXPECT_THAT([] { parse_roles("relay,"); },
              ThrowsMessage<UserError>(HasSubstr(
                  "'' is no role of this build; there are: none, admin, index, orders, relay, users")));
  EXPECT_THAT([] { parse_roles("none,relay"); }, ThrowsMessage<UserError>(HasSubstr("'none' is no role")));
}

TEST(RolesTest, TheRoleOfAConsumerIsKnownByItsWholeName) {
  EXPECT_EQ(role_of_consumer("index-v1"), "index");
  EXPECT_EQ(role_of_consumer("index-v2"), "");
  EXPECT_EQ(role_of_consumer("other"), "");
}

TEST(RolesTest, AnyVersionOfAConsumerOfTheNodeIsItsOwn) {
  EXPECT_TRUE(is_own_consumer("index-v1"));
  EXPECT_TRUE(is_own_consumer("index-v20"));
  EXPECT_TRUE(is_own_consumer("index"));
  EXPECT_FALSE(is_own_consumer("index-v"));
  EXPECT_FALSE(is_own_consumer("index-1"));
  EXPECT_FALSE(is_own_consumer("index2"));
  EXPECT_FALSE(is_own_consumer("12"));
}

}  // namespace
}  // namespace todoke::app

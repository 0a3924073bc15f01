// Policies and consent.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "users/rig.hpp"

namespace todoke::test {
namespace {

class PoliciesTest : public testing::Test {
 protected:
  [[nodiscard]] RawResponse agree(const std::string& policies) const {
    return rig.post("/consents", fmt::format(R"({{"policies":[{}]}})", policies), token);
  }

  UsersRig rig;
  std::string token = rig.log_in(SecretKey::generate());
};

constexpr auto* kTerms1 = R"({"type":"terms","version":"1"})";
constexpr auto* kPrivacy1 = R"({"type":"privacy","version":"1"})";

TEST_F(PoliciesTest, OnANewNodeNothingIsAskedFor) {
  EXPECT_EQ(rig.get("/policies/current").body, R"({"policies":[]})");
  EXPECT_EQ(rig.get("/topic-subscriptions", token).status, 200);
}

TEST_F(PoliciesTest, WhatIsCurrentIsAskedForUntilItIsAgreedTo) {
  rig.make_policies_current("1");
  const auto refused = rig.get("/topic-subscriptions", token);
  EXPECT_EQ(code(refused), "428 CONSENT_REQUIRED");
  EXPECT_EQ(member(refused.body, "details.required"), fmt::format("[{},{}]", kPrivacy1, kTerms1));
  EXPECT_EQ(agree(kTerms1).status, 200);
  EXPECT_EQ(member(rig.get("/topic-subscriptions", token).body, "details.required"),
            fmt::format("[{}]", kPrivacy1));
  EXPECT_EQ(member(agree(kPrivacy1).body, "required"), "[]");
  EXPECT_EQ(rig.get("/topic-subscriptions", token).status, 200);
  rig.make_policies_current("2");
  EXPECT_EQ(code(rig.get("/topic-subscriptions", token)), "428 CONSENT_REQUIRED");
  const auto status = rig.get("/consents/status", token);
  EXPECT_EQ(member(status.body, "required.0.version"), "2");
  EXPECT_EQ(member(status.body, "given.1.version"), "1");
}

TEST_F(PoliciesTest, ThePolicyIsThereInTheLanguageThatIsAskedFor) {
  rig.make_policies_current("1");
  rig.sql(
      "INSERT INTO cn_admin.policies (type, version, locale, title, content, status, published_at) "
      "VALUES ('terms', '1', 'ja', 'Kiyaku', 'Honbun', 'published', now()), "
      "('terms', '2', 'en', 'Draft', 'Draft', 'draft', NULL)");
  const auto current = rig.get("/policies/current?locale=ja");
  EXPECT_EQ(member(current.body, "policies.1.title"), "Kiyaku");
  EXPECT_EQ(member(current.body, "policies.1.url"),
            "https://relay.example.org/api/v1/policies/terms/1?locale=ja");
  EXPECT_EQ(member(current.body, "policies.0.locale"), "en");
  EXPECT_EQ(member(rig.get("/policies/terms/1?locale=ja").body, "content"), "Honbun");
  EXPECT_EQ(member(rig.get("/policies/terms/1?locale=fr").body, "content"), "Text of terms 1");
  EXPECT_EQ(member(rig.get("/policies/terms/1").body, "locales"), R"(["en","ja"])");
  EXPECT_EQ(code(rig.get("/policies/terms/2")), "404 NOT_FOUND");
}

TEST_F(PoliciesTest, NobodyAgreesToWhatIsNotPublished) {
  rig.make_policies_current("1");
  const auto refused = agree(fmt::format(R"({},{{"type":"terms","version":"9"}})", kTerms1));
  EXPECT_EQ(code(refused), "422 VALIDATION_ERROR");
  EXPECT_EQ(member(refused.body, "details.field"), "policies[1]");
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_user.policy_consents"), "0");
  EXPECT_EQ(agree(fmt::format("{0},{0}", kTerms1)).status, 200);
}

}  // namespace
}  // namespace todoke::test

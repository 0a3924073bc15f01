// Logging in, and what a request has to prove.
#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/base64.hpp"
#include "base/bytes.hpp"
#include "base/json_writer.hpp"
#include "users/rig.hpp"

namespace todoke::test {
namespace {

using testing::HasSubstr;

class AuthTest : public testing::Test {
 protected:
  std::string challenge(const SecretKey& key) {
    return member(rig.post("/auth/challenge", fmt::format(R"({{"pubkey":"{}"}})", key.pubkey().hex())).body,
                  "challenge");
  }
  RawResponse verify(const std::string& event) { return rig.post("/auth/verify", verify_body(event)); }
  [[nodiscard]] std::string code_of(const std::string& authorization) const {
    return code(rig.get("/consents/status", authorization));
  }

  UsersRig rig;
  SecretKey alice = SecretKey::generate();
  SecretKey bob = SecretKey::generate();
};

TEST_F(AuthTest, ASignedChallengeGivesATokenThatOpensTheApi) {
  const auto response = verify(auth_event(alice, challenge(alice)));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(member(response.body, "token_type"), "Bearer");
  EXPECT_EQ(member(response.body, "expires_in"), "900");
  EXPECT_EQ(member(response.body, "pubkey"), alice.pubkey().hex());
  const auto token = "Authorization: bearer " + member(response.body, "access_token") + "\r\n";
  EXPECT_EQ(rig.get("/consents/status", token).status, 200);
  EXPECT_EQ(rig.value("SELECT pubkey FROM cn_user.accounts"), alice.pubkey().hex());
}

TEST_F(AuthTest, TheEventMayComeAsTextAndNameAnySchemeAndPortOfTheNode) {
  for (const auto* relay :
       {"wss://relay.example.org", "ws://RELAY.example.org:7777/relay", "http://relay.example.org/"}) {
    JsonWriter json;
    json.begin_object().member("auth_event_json", auth_event(alice, challenge(alice), relay)).end_object();
    EXPECT_EQ(rig.post("/auth/verify", json.text()).status, 200) << relay;
  }
}

TEST_F(AuthTest, AChallengeWorksOnceAndForItsKeyAlone) {
  const auto of_alice = challenge(alice);
  EXPECT_EQ(code(verify(auth_event(bob, of_alice))), "401 AUTH_FAILED");
  EXPECT_EQ(verify(auth_event(alice, of_alice)).status, 200);
  EXPECT_EQ(code(verify(auth_event(alice, of_alice))), "401 AUTH_FAILED");
  const auto expired = challenge(alice);
  rig.sql("UPDATE cn_user.auth_challenges SET expires_at = now() - interval '1 s'");
  EXPECT_EQ(code(verify(auth_event(alice, expired))), "401 AUTH_FAILED");
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_user.auth_challenges"), "0");
}

TEST_F(AuthTest, AnEventThatIsNotForThisNodeOrTooOldOrForgedGivesNothing) {
  EXPECT_EQ(code(verify(auth_event(alice, challenge(alice), "https://evil.example"))), "401 AUTH_FAILED");
  EXPECT_EQ(
      code(verify(auth_event(alice, challenge(alice), "https://relay.example.org", seconds_now() - 601))),
      "401 AUTH_FAILED");
  auto forged = auth_event(alice, challenge(alice));
  const auto sig = forged.find("\"sig\":\"") + 7;
  forged[sig] = forged[sig] == '0' ? '1' : '0';
  EXPECT_EQ(code(verify(forged)), "401 AUTH_FAILED");
  EXPECT_EQ(code(verify(R"({"kind":22242})")), "422 VALIDATION_ERROR");
  EXPECT_EQ(code(verify("7")), "422 VALIDATION_ERROR");
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_user.accounts"), "0");
}

TEST_F(AuthTest, OfOneKeyTheNewestChallengesStay) {
  const auto first = challenge(alice);
  rig.sql(fmt::format(
      "INSERT INTO cn_user.auth_challenges SELECT 'challenge-number-' || n, '{}', now() + interval '1 h' "
      "FROM generate_series(1, 100) n",
      alice.pubkey().hex()));
  challenge(alice);
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_user.auth_challenges"), "100");
  EXPECT_EQ(code(verify(auth_event(alice, first))), "401 AUTH_FAILED");
}

TEST_F(AuthTest, WhatIsMissingExpiredForgedOrForeignIsRefused) {
  EXPECT_EQ(code_of(""), "401 AUTH_REQUIRED");
  EXPECT_EQ(code_of("Authorization: Basic abc\r\n"), "401 AUTH_REQUIRED");
  EXPECT_EQ(code_of("Authorization: Bearer nonsense\r\n"), "401 INVALID_TOKEN");
  auto forged = rig.log_in(alice);
  forged[forged.size() - 8] = forged[forged.size() - 8] == 'A' ? 'B' : 'A';
  EXPECT_EQ(code_of(forged), "401 INVALID_TOKEN");
  const UsersRig other(Flags{{"users.secret_file", std::filesystem::temp_directory_path() / random_hex(8)}});
  EXPECT_EQ(code_of(other.log_in(alice)), "401 INVALID_TOKEN");
  const auto token = rig.log_in(alice);
  rig.clock().shift(std::chrono::seconds(901));
  EXPECT_EQ(code_of(token), "401 INVALID_TOKEN");
  EXPECT_THAT(rig.get("/consents/status").header("WWW-Authenticate"), HasSubstr("Bearer"));
}

TEST_F(AuthTest, ARequestThatIsSignedForItselfNeedsNoToken) {
  const std::string target = "/api/v1/consents/status";
  EXPECT_EQ(rig.get("/consents/status", http_auth(alice, "GET", target)).status, 200);
  EXPECT_EQ(code_of(http_auth(alice, "POST", target)), "401 AUTH_FAILED");
  EXPECT_EQ(code_of(http_auth(alice, "GET", "/api/v1/search")), "401 AUTH_FAILED");
  EXPECT_EQ(code_of(http_auth(alice, "GET", target, "", seconds_now() - 61)), "401 AUTH_FAILED");
  EXPECT_EQ(code_of("Authorization: Nostr e30=\r\n"), "401 AUTH_FAILED");
}

TEST_F(AuthTest, ADisabledAccountStopsAtOnce) {
  const auto token = rig.log_in(alice);
  EXPECT_EQ(rig.get("/consents/status", token).status, 200);
  rig.sql("UPDATE cn_user.accounts SET status = 'disabled'");
  EXPECT_EQ(code_of(token), "403 ACCOUNT_DISABLED");
  EXPECT_EQ(code_of(http_auth(alice, "GET", "/api/v1/consents/status")), "403 ACCOUNT_DISABLED");
  EXPECT_EQ(code(verify(auth_event(alice, challenge(alice)))), "403 ACCOUNT_DISABLED");
  rig.sql("UPDATE cn_user.accounts SET status = 'deleted'");
  EXPECT_EQ(code_of(token), "410 ACCOUNT_DELETED");
  rig.sql("UPDATE cn_user.accounts SET status = 'active'");
  EXPECT_EQ(rig.get("/consents/status", token).status, 200);
}

TEST(AuthRatesTest, LoginsPublicAndProtectedRequestsHaveRatesOfTheirOwn) {
  const UsersRig rig(Flags{{"limits.rates", "on"},
                           {"users.auth_per_minute", "3"},
                           {"users.public_per_minute", "2"},
                           {"users.protected_per_minute", "2"}});
  const auto alice = SecretKey::generate();
  const auto token = rig.log_in(alice);
  EXPECT_EQ(rig.post("/auth/verify", "{}").status, 422);
  const auto refused = rig.post("/auth/verify", "{}");
  EXPECT_EQ(code(refused), "429 RATE_LIMITED");
  EXPECT_NE(refused.header("Retry-After"), "");
  EXPECT_EQ(rig.get("/policies/current").status, 200);
  EXPECT_EQ(rig.get("/policies/current").status, 200);
  EXPECT_EQ(code(rig.get("/policies/current")), "429 RATE_LIMITED");
  EXPECT_EQ(rig.get("/consents/status", token).status, 200);
  EXPECT_EQ(code(rig.get("/consents/status")), "401 AUTH_REQUIRED");
  EXPECT_EQ(code(rig.get("/consents/status", token)), "429 RATE_LIMITED");
}

}  // namespace
}  // namespace todoke::test

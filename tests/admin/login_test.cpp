// Logging in, and how long it holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "admin/rig.hpp"

namespace todoke::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class AdminLoginTest : public testing::Test {
 protected:
  AdminLoginTest() { rig.add_administrator("alice"); }

  int status_with(const std::string& headers) { return rig.ask("GET", "/auth/session", "", headers).status; }

  AdminRig rig;
};

TEST_F(AdminLoginTest, ALoginGivesACookieForThisApiAndATokenAgainstForgedRequests) {
  const auto login = rig.log_in("alice");
  ASSERT_EQ(login.status, 200) << login.body;
  EXPECT_EQ(json_text(login.body, "username"), "alice");
  EXPECT_EQ(json_text(login.body, "role"), "operator");
  EXPECT_EQ(json_text(login.body, "csrf_token").size(), 64U);
  const auto cookie = login.header("Set-Cookie");
  EXPECT_THAT(cookie, HasSubstr("; Path=/admin-api; HttpOnly; SameSite=Strict; "));
  EXPECT_THAT(cookie, Not(HasSubstr("Secure")));  // loopback, in plain
  EXPECT_EQ(status_with(AdminRig::cookie_line(login)), 200);
}

TEST_F(AdminLoginTest, AWrongPasswordAndAnUnknownNameGetTheSameAnswer) {
  const auto wrong = rig.log_in("alice", "guess");
  const auto unknown = rig.log_in("nobody", "guess");
  EXPECT_EQ(wrong.status, 401);
  EXPECT_EQ(wrong.body, unknown.body);
  EXPECT_EQ(json_text(wrong.body, "code"), "WRONG_LOGIN");
  EXPECT_EQ(wrong.header("Set-Cookie"), "");
}

TEST_F(AdminLoginTest, ADisabledAdministratorCanNotLogInAndTheirSessionsEnd) {
  const auto login = rig.log_in("alice");
  rig.node.sql("UPDATE cn_admin.administrators SET is_disabled = true");
  EXPECT_EQ(status_with(AdminRig::cookie_line(login)), 401);
  EXPECT_EQ(rig.log_in("alice").status, 401);
}

TEST_F(AdminLoginTest, AChangeNeedsTheTokenOfItsOwnSession) {
  const auto login = rig.log_in("alice");
  const auto other = rig.log_in("alice");
  const auto cookie = AdminRig::cookie_line(login);
  const auto change = [&](const std::string& headers) {
    return rig.ask("POST", "/users/" + std::string(64, 'a') + "/disable", "{}", headers);
  };
  EXPECT_EQ(json_text(change(cookie).body, "code"), "CSRF_TOKEN_REQUIRED");
  EXPECT_EQ(change(cookie + "X-CSRF-Token: " + std::string(64, '0') + "\r\n").status, 403);
  EXPECT_EQ(change(cookie + "X-CSRF-Token: " + json_text(other.body, "csrf_token") + "\r\n").status, 403);
  EXPECT_EQ(change(AdminRig::session_lines(login)).status, 200);
}

TEST_F(AdminLoginTest, ASessionThatIsNotUsedEndsAndOneThatIsUsedDoesNot) {
  using std::chrono::minutes;
  const auto used = AdminRig::cookie_line(rig.log_in("alice"));
  const auto unused = AdminRig::cookie_line(rig.log_in("alice"));
  rig.node.clock().shift(minutes(20));
  EXPECT_EQ(status_with(used), 200);
  rig.node.clock().shift(minutes(40));
  EXPECT_EQ(status_with(used), 200);
  EXPECT_EQ(status_with(unused), 401);
}

TEST_F(AdminLoginTest, ASessionEndsAfterItsLongestTimeHoweverMuchItIsUsed) {
  using std::chrono::minutes;
  const auto cookie = AdminRig::cookie_line(rig.log_in("alice"));
  for (int at = 20; at < 12 * 60; at += 20) {
    rig.node.clock().shift(minutes(at));
    ASSERT_EQ(status_with(cookie), 200) << at;
  }
  rig.node.clock().shift(minutes(12 * 60 + 1));
  EXPECT_EQ(status_with(cookie), 401);
}

TEST_F(AdminLoginTest, RenewingGivesANewCookieAndEndsTheOldOne) {
  const auto login = rig.log_in("alice");
  const auto renewed = rig.ask("POST", "/auth/renew", "", AdminRig::session_lines(login));
  ASSERT_EQ(renewed.status, 200) << renewed.body;
  EXPECT_NE(json_text(renewed.body, "csrf_token"), json_text(login.body, "csrf_token"));
  EXPECT_EQ(status_with(AdminRig::cookie_line(login)), 401);
  EXPECT_EQ(status_with(AdminRig::cookie_line(renewed)), 200);
}

TEST_F(AdminLoginTest, ALogoutEndsTheSession) {
  const auto login = rig.log_in("alice");
  EXPECT_EQ(rig.ask("POST", "/auth/logout", "", AdminRig::session_lines(login)).status, 204);
  EXPECT_EQ(status_with(AdminRig::cookie_line(login)), 401);
}

TEST_F(AdminLoginTest, ALoginNeverTakesOverACookieThatSomebodyElseChose) {
  const auto planted = std::string(64, 'e');
  const auto login =
      rig.ask("POST", "/auth/login", std::string(R"({"username":"alice","password":")") + kPassword + "\"}",
              "Cookie: todoke_session=" + planted + "\r\n");
  ASSERT_EQ(login.status, 200);
  EXPECT_THAT(login.header("Set-Cookie"), Not(HasSubstr(planted)));
}

TEST_F(AdminLoginTest, WhoGuessesIsSlowedDownAndTokensAreNot) {
  AdminAnswer answer;
  // On a slow machine some come back meanwhile.
  for (int i = 0; i < 40 && answer.status != 429; ++i) answer = rig.log_in("alice", "guess");
  EXPECT_EQ(answer.status, 429);
  EXPECT_NE(answer.header("Retry-After"), "");
  EXPECT_EQ(rig.log_in("alice").status, 429);
  EXPECT_EQ(rig.get("/jobs").status, 200);
  rig.node.clock().shift_steady(std::chrono::minutes(2));
  EXPECT_EQ(rig.log_in("alice").status, 200);
}

TEST_F(AdminLoginTest, PasswordsCookiesAndTokensAreKeptAsHashes) {
  const auto login = rig.log_in("alice");
  const auto cookie = login.header("Set-Cookie").substr(std::string("todoke_session=").size(), 64);
  EXPECT_EQ(rig.node.value("SELECT count(*) FROM cn_admin.admin_sessions WHERE id_hash = '" + cookie + "'"),
            "0");
  EXPECT_EQ(rig.node.value("SELECT count(*) FROM cn_admin.administrators WHERE password_hash LIKE "
                           "'$argon2id$v=19$m=65536,t=3,p=1$%'"),
            "1");
  EXPECT_EQ(rig.node.value("SELECT count(*) FROM cn_admin.audit WHERE before::text ~ 'argon2|token_hash' "
                           "OR after::text ~ 'argon2|token_hash'"),
            "0");
}

TEST(AdminOpenListenerTest, NobodyPassesOverAListenerThatOthersReachInPlain) {
  AdminRig rig(Flags{{"server.internal_listen", "0.0.0.0:7448"}});
  rig.add_administrator("alice");
  const auto login = rig.log_in("alice");
  EXPECT_EQ(login.status, 403);
  EXPECT_EQ(json_text(login.body, "code"), "TLS_REQUIRED");
  EXPECT_EQ(json_text(rig.get("/jobs").body, "code"), "TLS_REQUIRED");
}

}  // namespace
}  // namespace todoke::test

// `todoke admin` and `todoke audit --trail`, as commands beside a node.
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "admin/rig.hpp"
#include "harness/todoke_process.hpp"

namespace todoke::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class AdminCommandsTest : public testing::Test {
 protected:
  Exit run(std::vector<std::string> words) {
    words.insert(words.begin(), todoke_binary());
    return run_command(words, {"TODOKE_DATABASE_URL=" + rig.node.database()->url(),
                               "TODOKE_DATA_DIR=" + folder.path().string()});
  }
  std::string file_with(const std::string& password) {
    const auto path = folder.path() / "password";
    std::ofstream(path) << password;
    return path.string();
  }

  AdminRig rig;
  TempFolder folder;
};

TEST_F(AdminCommandsTest, AnAdministratorOfThePasswordInAFileLogsIn) {
  const auto made = run({"admin", "create", "alice", "--password-file", file_with("correct horse\n")});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(rig.log_in("alice", "correct horse").status, 200);
  EXPECT_EQ(run({"admin", "create", "alice", "--password-file", file_with("other")}).code, 1);
  EXPECT_THAT(run({"admin", "list"}).out, HasSubstr("alice"));
}

TEST_F(AdminCommandsTest, AResetEndsSessionsAndThePasswordBefore) {
  run({"admin", "create", "alice", "--role", "viewer", "--password-file", file_with("correct horse\n")});
  const auto cookie = AdminRig::cookie_line(rig.log_in("alice", "correct horse"));
  ASSERT_EQ(run({"admin", "reset", "alice", "--password-file", file_with("battery staple\n")}).code, 0);
  EXPECT_EQ(rig.ask("GET", "/auth/session", "", cookie).status, 401);
  EXPECT_EQ(rig.log_in("alice", "correct horse").status, 401);
  EXPECT_EQ(rig.log_in("alice", "battery staple").status, 200);
  ASSERT_EQ(run({"admin", "disable", "alice"}).code, 0);
  EXPECT_EQ(rig.log_in("alice", "battery staple").status, 401);
  EXPECT_EQ(run({"admin", "disable", "nobody"}).code, 1);
}

TEST_F(AdminCommandsTest, ATokenWorksUntilItIsRevoked) {
  const auto made = run({"admin", "token", "create", "deploy", "--role", "viewer"});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, StartsWith("todoke_admin_"));
  const auto line = "Authorization: Bearer " + made.out.substr(0, made.out.size() - 1) + "\r\n";
  EXPECT_EQ(rig.ask("GET", "/jobs", "", line).status, 200);
  const auto id = rig.node.value("SELECT token_id FROM cn_admin.admin_tokens WHERE name = 'deploy'");
  ASSERT_EQ(run({"admin", "token", "revoke", id}).code, 0);
  EXPECT_EQ(rig.ask("GET", "/jobs", "", line).status, 401);
  EXPECT_THAT(run({"admin", "token", "list"}).out, HasSubstr("deploy"));
}

TEST_F(AdminCommandsTest, TheTrailIsCheckedAndAForgedRowIsNamed) {
  run({"admin", "token", "create", "deploy"});
  const auto whole = run({"audit", "--trail"});
  EXPECT_EQ(whole.code, 0) << whole.out;
  EXPECT_THAT(whole.out, HasSubstr("the audit is whole"));
  rig.node.sql(
      "ALTER TABLE cn_admin.audit DISABLE TRIGGER USER; UPDATE cn_admin.audit SET actor = 'operator:mallory';"
      " ALTER TABLE cn_admin.audit ENABLE TRIGGER USER");
  const auto forged = run({"audit", "--trail"});
  EXPECT_EQ(forged.code, 1);
  EXPECT_THAT(forged.out,
              HasSubstr("BROKEN      audit 1 (link 1): its row, or a link before it, was changed"));
}

}  // namespace
}  // namespace todoke::test

// relay.policy_command of a running node: SIGHUP reads it again.
#include <csignal>
#include <fstream>
#include <sys/stat.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/nostr_client.hpp"
#include "harness/todoke_process.hpp"

namespace todoke::test {
namespace {

using testing::HasSubstr;

class PolicyCommand : public testing::Test {
 protected:
  // A program that says the same of every event.
  std::string program(const std::string& name, const std::string& decision) const {
    const auto path = (folder.path() / name).string();
    std::ofstream(path) << fmt::format(R"sh(#!/bin/sh
while read -r line; do
  id=$(expr "$line" : '.*"event":{{"id":"\([0-9a-f]*\)"')
  echo "{{\"id\":\"$id\",{}}}"
done
)sh",
                                       decision);
    chmod(path.c_str(), 0755);
    return path;
  }
  std::string configure(const std::string& relay) const {
    const auto path = (folder.path() / "todoke.toml").string();
    std::ofstream(path) << "[relay]\n" << relay << '\n';
    return path;
  }
  static std::string told(TodokeUp& node, const std::string& content) {
    NostrClient client(node.url());
    const auto ok =
        client.publish(nostr::sign_event({unix_now(), 1, {{"t", "kukuri:global"}}, content}, key()));
    return ok.accepted ? "accepted" : ok.text;
  }
  static const nostr::SecretKey& key() {
    static const auto value = nostr::SecretKey::generate();
    return value;
  }

  TempFolder folder;
};

TEST_F(PolicyCommand, SighupTakesAnotherProgramAndNoneAtAll) {
  const auto strict = program("strict", R"(\"action\":\"reject\",\"msg\":\"blocked: strict\")");
  const auto mild = program("mild", R"(\"action\":\"reject\",\"msg\":\"blocked: mild\")");
  const auto file = configure(fmt::format("policy_command = ['{}']", strict));
  TodokeUp node(folder.path() / "data", {"--config", file});
  node.wait_ready();
  EXPECT_EQ(told(node, "first"), "blocked: strict");
  configure(fmt::format("policy_command = ['{}']", mild));
  node.process().kill(SIGHUP);
  wait_until("the other program", [&] { return told(node, "second") == "blocked: mild"; });
  configure("");
  node.process().kill(SIGHUP);
  wait_until("no program", [&] { return told(node, "third") == "accepted"; });
}

TEST_F(PolicyCommand, ProgramWithoutAnAbsolutePathStopsTheStart) {
  const auto file = configure("policy_command = ['policy.py']");
  const auto exit =
      run_command({todoke_binary(), "up", "--config", file, "--data_dir", folder.path().string()});
  EXPECT_NE(exit.code, 0);
  EXPECT_THAT(exit.err, HasSubstr("relay.policy_command must begin with an absolute path"));
}

}  // namespace
}  // namespace todoke::test

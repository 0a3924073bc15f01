// The operator's program (relay.policy_command): real ones, in Python and in shell.
#include <csignal>
#include <fstream>
#include <sys/stat.h>

#include <fmt/format.h>

#include "harness/run_task.hpp"
#include "harness/todoke_process.hpp"
#include "support.hpp"

namespace todoke::test {
namespace {

constexpr auto* kNoDecision = "error: policy did not decide, try again";

// Decides by the content; `three` waits for two others and answers the newest first.
constexpr auto* kInPython = R"(#!/usr/bin/python3
import json, sys
held = []
for line in sys.stdin:
    question = json.loads(line)
    event = question["event"]
    answer = {"id": event["id"], "action": "accept"}
    content = event["content"]
    if content == "garbage":
        print("no answer")
    elif content == "spam":
        answer.update(action="reject", msg="blocked: no spam from " + question["sourceType"] + " " + question["sourceInfo"])
    elif content == "rude":
        answer.update(action="reject")
    elif content == "hidden":
        answer.update(action="shadowReject")
    elif content == "silence":
        continue
    if content == "three":
        held.insert(0, answer)
        if len(held) < 3:
            continue
    for one in held or [answer]:
        print(json.dumps(one), flush=True)
    held = []
)";

constexpr auto* kInShell = R"sh(#!/bin/sh
while read -r line; do
  id=$(expr "$line" : '.*"event":{"id":"\([0-9a-f]*\)"')
  case $line in
    *spam*) echo "{\"id\":\"$id\",\"action\":\"reject\",\"msg\":\"blocked: spam\"}" ;;
    *) echo "{\"id\":\"$id\",\"action\":\"accept\",\"msg\":\"\"}" ;;
  esac
done
)sh";

// Ends at its first question, and the second time decides.
constexpr auto* kEndsOnce = R"sh(#!/bin/sh
read -r line
[ -e "$1" ] || { : >"$1"; exit 3; }
id=$(expr "$line" : '.*"event":{"id":"\([0-9a-f]*\)"')
echo "{\"id\":\"$id\",\"action\":\"accept\"}"
read -r line
)sh";

class PolicyTest : public testing::Test {
 protected:
  PolicyTest() { std::signal(SIGPIPE, SIG_IGN); }  // as in the program

  std::string script(const std::string& text) {
    const auto path = (folder.path() / "policy").string();
    std::ofstream(path) << text;
    chmod(path.c_str(), 0755);
    return path;
  }
  // What a client is told of an event with this content.
  static std::string told(NostrClient& client, const Event& event) {
    const auto ok = client.publish(event);
    EXPECT_EQ(ok.id, hex_of(event));
    return fmt::format("{} {}", ok.accepted, ok.text);
  }
  [[nodiscard]] static double decided(const RelayRig& rig, const std::string& action) {
    return rig.metric(fmt::format("todoke_policy_decisions_total{{action=\"{}\"}}", action));
  }

  TempFolder folder;
  SecretKey alice = SecretKey::generate();
};

TEST_F(PolicyTest, ProgramAcceptsRejectsInItsWordsAndRejectsWithoutAWord) {
  const RelayRig rig(Flags{{"relay.policy_command", script(kInPython)}});
  NostrClient client(rig.url());
  const auto good = global_note(alice, "good");
  EXPECT_EQ(told(client, good), "true ");
  EXPECT_EQ(told(client, global_note(alice, "spam")), "false blocked: no spam from IP4 127.0.0.1");
  EXPECT_EQ(told(client, global_note(alice, "rude")), "false blocked: not taken by the policy of this relay");
  EXPECT_EQ(told(client, global_note(alice, "hidden")), "true ");
  EXPECT_THAT(client.stored(kGlobal).ids, ElementsAre(hex_of(good)));
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.event_dedupe"), "1");
  EXPECT_EQ(decided(rig, "accept"), 1);
  EXPECT_EQ(decided(rig, "reject"), 2);
  EXPECT_EQ(decided(rig, "shadow_reject"), 1);
  EXPECT_EQ(rig.metric("todoke_ingest_rejected_total{reason=\"policy_refused\"}"), 2);
}

TEST_F(PolicyTest, ShellDecidesAsWell) {
  const RelayRig rig(Flags{{"relay.policy_command", script(kInShell)}});
  NostrClient client(rig.url());
  EXPECT_EQ(told(client, global_note(alice, "good")), "true ");
  EXPECT_EQ(told(client, global_note(alice, "spam")), "false blocked: spam");
}

TEST_F(PolicyTest, SeveralQuestionsAreUnderWayAndAnsweredInAnyOrder) {
  const RelayRig rig(Flags{{"relay.policy_command", script(kInPython)}});
  NostrClient client(rig.url());
  std::vector<Event> events;
  for (int i = 0; i < 3; ++i) events.push_back(global_note(alice, "three", {{"x", std::to_string(i)}}));
  for (const auto& event : events) client.send(fmt::format(R"(["EVENT",{}])", event.json()));
  for (int i = 0; i < 3; ++i) EXPECT_THAT(client.receive("[\"OK\""), HasSubstr(",true,"));
  EXPECT_EQ(client.stored(kGlobal).ids.size(), 3U);
}

TEST_F(PolicyTest, WhatIsEphemeralIsAskedAboutAndWhatIsRefusedAnywayIsNot) {
  const RelayRig rig(Flags{{"relay.policy_command", script(kInPython)}});
  NostrClient client(rig.url());
  EXPECT_EQ(told(client, global_note(alice, "spam", {}, 20001)), "false blocked: no spam from IP4 127.0.0.1");
  EXPECT_EQ(told(client, global_note(alice, "good", {}, 20001)), "true ");
  EXPECT_EQ(told(client, note(alice, "good", {})), "false invalid: missing topic");
  EXPECT_EQ(decided(rig, "accept"), 1);
  EXPECT_EQ(decided(rig, "reject"), 1);
}

TEST_F(PolicyTest, EventWithoutAnAnswerIsRefusedAndOthersGoOn) {
  const RelayRig rig(Flags{{"relay.policy_command", script(kInPython)}, {"relay.policy_timeout", "100ms"}});
  NostrClient client(rig.url());
  client.send(fmt::format(R"(["EVENT",{}])", global_note(alice, "silence").json()));
  NostrClient other(rig.url());
  EXPECT_EQ(told(other, global_note(alice, "good")), "true ");
  EXPECT_THAT(client.receive("[\"OK\""), HasSubstr(kNoDecision));
  EXPECT_EQ(decided(rig, "failed"), 1);
  EXPECT_EQ(told(client, global_note(alice, "still good")), "true ");
}

TEST_F(PolicyTest, EventWithoutAnAnswerIsTakenWhereTheOperatorSaysSo) {
  RelayRig rig(Flags{{"relay.policy_command", script(kInPython)}, {"relay.policy_timeout", "100ms"}});
  rig.change({{"relay.policy_on_failure", "accept"}});
  NostrClient client(rig.url());
  const auto event = global_note(alice, "silence");
  EXPECT_EQ(told(client, event), "true ");
  EXPECT_THAT(client.stored(kGlobal).ids, ElementsAre(hex_of(event)));
}

TEST_F(PolicyTest, ProgramThatStaysSilentIsEndedAndStartedAgain) {
  const RelayRig rig(Flags{{"relay.policy_command", script(kInPython)}, {"relay.policy_timeout", "50ms"}});
  NostrClient client(rig.url());
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(told(client, global_note(alice, "silence", {{"x", std::to_string(i)}})),
              fmt::format("false {}", kNoDecision));
  }
  EXPECT_TRUE(rig.await_metric("todoke_service_restarts_total{service=\"policy\"}", 1));
}

TEST_F(PolicyTest, ProgramThatEndsIsStartedAgainAndAskedAgain) {
  const auto mark = (folder.path() / "mark").string();
  const RelayRig rig(
      Flags{{"relay.policy_command", script(kEndsOnce) + "," + mark}, {"relay.policy_timeout", "30s"}});
  NostrClient client(rig.url());
  EXPECT_EQ(told(client, global_note(alice, "good")), "true ");
  EXPECT_EQ(rig.metric("todoke_service_restarts_total{service=\"policy\"}"), 1);
}

TEST_F(PolicyTest, LinesThatAreNoAnswersAreCountedAndPassedOver) {
  const RelayRig rig(Flags{{"relay.policy_command", script(kInPython)}});
  NostrClient client(rig.url());
  EXPECT_EQ(told(client, global_note(alice, "garbage")), "true ");
  EXPECT_EQ(rig.metric("todoke_policy_unreadable_total"), 1);
}

TEST_F(PolicyTest, ProgramThatIsNotThereRefusesEventsAndNothingElse) {
  const RelayRig rig(Flags{{"relay.policy_command", "/does/not/exist"}, {"relay.policy_timeout", "100ms"}});
  NostrClient client(rig.url());
  EXPECT_EQ(told(client, global_note(alice, "good")), fmt::format("false {}", kNoDecision));
  EXPECT_THAT(client.stored(kGlobal).ids, IsEmpty());
}

TEST_F(PolicyTest, EventOfTheUserApiIsAskedAboutAndOneOfTheNodeIsNot) {
  RelayRig rig(Flags{{"relay.policy_command", script(kInPython)}});
  const auto publish = [&](const Event& event, outbox::From from) {
    return run_task([&] {
      return rig.events().publish(std::string(event.json()), from, std::nullopt,
                                  Deadline::after(std::chrono::seconds(20)));
    });
  };
  EXPECT_EQ(publish(global_note(alice, "spam"), outbox::From::api).message, "blocked: no spam from API ");
  EXPECT_EQ(publish(global_note(alice, "good"), outbox::From::api).kind, outbox::Published::Kind::stored);
  EXPECT_EQ(publish(global_note(alice, "spam"), outbox::From::node).kind, outbox::Published::Kind::stored);
}

}  // namespace
}  // namespace todoke::test

#include "relay/policy_protocol.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json_value.hpp"
#include "relay/test_support.hpp"

namespace todoke::relay {
namespace {

using testing::HasSubstr;

const std::string kId(64, 'a');

std::string refusal(const std::string& line) {
  const auto answer = read_policy_answer(line);
  return answer ? "none" : answer.error();
}

TEST(PolicyProtocol, QuestionIsOneLineOfJsonWithTheEventAsItCame) {
  const auto event = *test::event_of(test::author(1), 1, {}, "a \"quoted\"\nline");
  const auto line =
      policy_question(event, {"IP4", "192.0.2.1"}, std::chrono::sys_seconds(std::chrono::seconds(17)));
  EXPECT_EQ(line, R"({"type":"new","event":)" + std::string(event.json()) +
                      R"(,"receivedAt":17,"sourceType":"IP4","sourceInfo":"192.0.2.1"})" + "\n");
}

TEST(PolicyProtocol, QuestionNamesTheKeyThatWasProven) {
  const auto event = *test::event_of(test::author(1), 1, {}, "x");
  EXPECT_THAT(
      policy_question(event, {"Stream", "kukuri:global", event.pubkey()}, {}),
      HasSubstr(R"("sourceType":"Stream","sourceInfo":"kukuri:global","authed":")" + event.pubkey().hex()));
}

TEST(PolicyProtocol, AddressIsOfTheVersionThatItLooksLike) {
  EXPECT_EQ(source_of_address("192.0.2.1").type, "IP4");
  EXPECT_EQ(source_of_address("2001:db8::1").type, "IP6");
}

TEST(PolicyProtocol, AnswerHasAnIdAndAnAction) {
  const auto answer = read_policy_answer(R"({"id":")" + kId + R"(","action":"reject","msg":"blocked: no"})");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->id.hex(), kId);
  EXPECT_EQ(answer->verdict.action, PolicyAction::reject);
  EXPECT_EQ(answer->verdict.text, "blocked: no");
}

TEST(PolicyProtocol, AnswerMayHaveNoMessageAndMoreMembers) {
  const auto accepted = read_policy_answer(R"( {"action":"accept","id":")" + kId + R"(","more":[1]} )");
  ASSERT_TRUE(accepted);
  EXPECT_EQ(accepted->verdict.action, PolicyAction::accept);
  const auto hidden = read_policy_answer(R"({"id":")" + kId + R"(","action":"shadowReject","msg":null})");
  ASSERT_TRUE(hidden);
  EXPECT_EQ(hidden->verdict.action, PolicyAction::shadow_reject);
}

TEST(PolicyProtocol, MessageThatIsTooLongIsLeftOut) {
  const auto answer = read_policy_answer(R"({"id":")" + kId + R"(","action":"reject","msg":")" +
                                         std::string(kPolicyTextBytesMax + 1, 'x') + R"("})");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->verdict.text, "");
}

TEST(PolicyProtocol, WhatIsNoAnswerIsRefusedWithAReason) {
  EXPECT_NE(refusal("hello"), "none");
  EXPECT_EQ(refusal("[]"), "must be an object");
  EXPECT_THAT(refusal(R"({"action":"accept"})"), HasSubstr("id must"));
  EXPECT_THAT(refusal(R"({"id":"abc","action":"accept"})"), HasSubstr("id must"));
  EXPECT_THAT(refusal(R"({"id":")" + kId + R"("})"), HasSubstr("action must"));
  EXPECT_THAT(refusal(R"({"id":")" + kId + R"(","action":"maybe"})"), HasSubstr("action must"));
  EXPECT_THAT(refusal(R"({"id":")" + kId + R"(","action":7})"), HasSubstr("action must"));
}

}  // namespace
}  // namespace todoke::relay

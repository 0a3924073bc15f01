#include "relay/policy_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace todoke::relay {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

nostr::EventId id_of(char digit) {
  return nostr::EventId::from_hex(std::string(64, digit)).value();
}

class PolicyQueueTest : public testing::Test {
 protected:
  void add(char digit, const std::string& line, seconds until) {
    queue.add({id_of(digit), line, SteadyTime{}, SteadyTime(until), [](const PolicyVerdict&) {}});
  }
  static std::vector<std::string> lines_of(const std::vector<PolicyQueue::Question>& questions) {
    std::vector<std::string> lines;
    for (const auto& question : questions) lines.push_back(question.line);
    return lines;
  }

  PolicyQueue queue;
};

TEST_F(PolicyQueueTest, QuestionsAreTakenByIdInAnyOrder) {
  add('1', "one\n", seconds(1));
  add('2', "two\n", seconds(2));
  EXPECT_EQ(queue.bytes(), 8U);
  EXPECT_EQ(queue.take(id_of('2'))->line, "two\n");
  EXPECT_FALSE(queue.take(id_of('2')));
  EXPECT_EQ(queue.take(id_of('1'))->line, "one\n");
  EXPECT_EQ(queue.size(), 0U);
  EXPECT_EQ(queue.bytes(), 0U);
}

TEST_F(PolicyQueueTest, OfTwoQuestionsAboutOneEventTheOlderIsTakenFirst) {
  add('1', "first\n", seconds(1));
  add('1', "second\n", seconds(2));
  EXPECT_EQ(queue.take(id_of('1'))->line, "first\n");
  EXPECT_EQ(queue.take(id_of('1'))->line, "second\n");
}

TEST_F(PolicyQueueTest, WhatIsOverdueIsTakenAloneAlsoBehindWhatIsNot) {
  add('1', "late\n", seconds(9));
  add('2', "soon\n", seconds(1));
  EXPECT_EQ(queue.first_until(), SteadyTime(seconds(1)));
  EXPECT_THAT(lines_of(queue.take_overdue(SteadyTime(seconds(1)))), ElementsAre("soon\n"));
  EXPECT_THAT(queue.take_overdue(SteadyTime(seconds(1))), IsEmpty());
  EXPECT_EQ(queue.lines(), "late\n");
  EXPECT_THAT(lines_of(queue.take_all()), ElementsAre("late\n"));
  EXPECT_FALSE(queue.first_until());
}

}  // namespace
}  // namespace todoke::relay

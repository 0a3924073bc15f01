#include "relay/query_line.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace todoke::relay::test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using Line = QueryLine<std::string>;

// Jobs are words; one that begins with "memory" needs no read.
class QueryLineTest : public testing::Test {
 protected:
  Line line_of(Line::Limits limits) {
    return {limits,
            patience,
            clock,
            registry.gauge("under_way", "Reads."),
            registry.gauge("waiting", "Jobs."),
            {[this](const std::string& job) {
               if (!job.starts_with("memory")) return false;
               answered.push_back(job);
               return true;
             },
             [this](std::string job, Line::Duration left) {
               begun.push_back(std::move(job));
               time_left = left;
             },
             [this](std::string job) { refused.push_back(std::move(job)); }}};
  }
  double waiting() { return registry.gauge("waiting", "Jobs.").value(); }

  ManualClock clock;
  metrics::Registry registry;
  std::atomic<std::chrono::milliseconds> patience = std::chrono::milliseconds(5'000);
  std::vector<std::string> answered;
  std::vector<std::string> begun;
  std::vector<std::string> refused;
  Line::Duration time_left{};
  static void ended(Line& line, Line::Customer& customer) { line.read_ended(customer.client(), &customer); }

  Line::Client of_alice;
  Line::Client of_bob;
  Line::Customer alice{of_alice};
  Line::Customer bob{of_bob};
};

TEST_F(QueryLineTest, ConnectionHasAFewReadsAtOnceInTheirOrder) {
  auto line = line_of({2, 10});
  for (const auto* job : {"1", "2", "3", "4"}) line.ask(alice, job);
  EXPECT_THAT(begun, ElementsAre("1", "2"));
  EXPECT_EQ(waiting(), 2);
  ended(line, alice);
  EXPECT_THAT(begun, ElementsAre("1", "2", "3"));
}

TEST_F(QueryLineTest, ConnectionsTakeTurnsWhenTheProcessIsFull) {
  auto line = line_of({2, 1});
  for (const auto* job : {"a1", "a2", "a3"}) line.ask(alice, job);
  line.ask(bob, "b1");
  for (int i = 0; i < 3; ++i) ended(line, i == 2 ? bob : alice);
  EXPECT_THAT(begun, ElementsAre("a1", "a2", "b1", "a3"));
}

TEST_F(QueryLineTest, EveryJobHasItsOwnTime) {
  auto line = line_of({4, 1});
  for (const auto* job : {"1", "2", "3"}) line.ask(alice, job);
  clock.advance(3s);
  line.ask(alice, "later");
  clock.advance(2s);
  ended(line, alice);
  EXPECT_THAT(refused, ElementsAre("2", "3"));
  EXPECT_THAT(begun, ElementsAre("1", "later"));
  EXPECT_EQ(time_left, 3s) << "the read has what is left";
  EXPECT_EQ(waiting(), 0);
}

TEST_F(QueryLineTest, LateJobIsRefusedThoughNoPlaceIsFree) {
  auto line = line_of({1, 2});
  Line::Client of_carol;
  Line::Customer carol{of_carol};
  line.ask(alice, "a1");
  line.ask(bob, "b1");
  line.ask(carol, "c1");
  line.ask(alice, "a2");
  clock.advance(6s);
  line.ask(bob, "b2");
  ended(line, alice);
  EXPECT_THAT(refused, ElementsAre("c1", "a2"));
  EXPECT_THAT(begun, ElementsAre("a1", "b1"));
}

TEST_F(QueryLineTest, PagesThatTheClientHasNotTakenCountAsReads) {
  auto line = line_of({2, 10});
  line.page_sent(alice);
  line.page_sent(alice);
  line.ask(alice, "1");
  EXPECT_THAT(begun, ElementsAre());
  line.page_done(alice);
  EXPECT_THAT(begun, ElementsAre("1"));
}

TEST_F(QueryLineTest, TimeOfAClientThatTakesNoPagesDoesNotCount) {
  auto line = line_of({2, 10});
  line.page_sent(alice);
  line.ask(alice, "1");
  line.ask(alice, "2");
  clock.advance(7s);
  ended(line, alice);
  EXPECT_EQ(time_left, 5s);
  line.page_sent(alice);
  line.ask(alice, "3");
  clock.advance(7s);
  line.page_done(alice);
  EXPECT_THAT(refused, ElementsAre());
  ended(line, alice);
  EXPECT_THAT(begun, ElementsAre("1", "2", "3"));
}

TEST_F(QueryLineTest, ManyConnectionsOfAClientAreOneClient) {
  auto line = line_of({1, 1});
  Line::Customer second{of_alice};
  Line::Customer third{of_alice};
  line.ask(alice, "a1");
  line.ask(second, "a2");
  line.ask(third, "a3");
  line.ask(second, "a4");
  line.ask(bob, "b1");
  line.ask(bob, "b2");
  for (auto* customer : {&alice, &second, &bob, &third, &second}) ended(line, *customer);
  EXPECT_THAT(begun, ElementsAre("a1", "a2", "b1", "a3", "a4", "b2"))
      << "bob's second stood in line after a4";
}

TEST_F(QueryLineTest, ClientThatHasUsedItsBudgetWaitsBehindTheOthers) {
  auto line = line_of({4, 1, 2s});
  for (const auto* job : {"a1", "a2", "a3", "a4"}) line.ask(alice, job);
  clock.advance(4s);
  ended(line, alice);
  line.ask(bob, "b1");
  line.ask(bob, "b2");
  ended(line, alice);
  ended(line, bob);
  EXPECT_THAT(begun, ElementsAre("a1", "a2", "b1", "b2"));
  ended(line, bob);
  EXPECT_THAT(begun, ElementsAre("a1", "a2", "b1", "b2", "a3")) << "nobody else asks";
}

TEST_F(QueryLineTest, ClientOverItsBudgetLeavesAPlaceToTheOthers) {
  auto line = line_of({4, 2, 1s});
  for (const auto* job : {"a1", "a2", "a3", "a4"}) line.ask(alice, job);
  EXPECT_THAT(begun, ElementsAre("a1", "a2")) << "at first it has all places";
  clock.advance(2s);
  ended(line, alice);
  EXPECT_THAT(begun, ElementsAre("a1", "a2"));
  line.ask(bob, "b1");
  EXPECT_THAT(begun, ElementsAre("a1", "a2", "b1")) << "at once";
  ended(line, alice);
  ended(line, bob);
  EXPECT_THAT(begun, ElementsAre("a1", "a2", "b1", "a3"));
}

TEST_F(QueryLineTest, BudgetComesBackWithTime) {
  auto line = line_of({4, 2, 1s});
  line.ask(alice, "a1");
  clock.advance(3s);
  ended(line, alice);
  EXPECT_FALSE(of_alice.is_forgettable(clock.steady(), 1s));
  clock.advance(3min);
  EXPECT_TRUE(of_alice.is_forgettable(clock.steady(), 1s));
  line.ask(alice, "a2");
  line.ask(alice, "a3");
  EXPECT_THAT(begun, ElementsAre("a1", "a2", "a3"));
  EXPECT_FALSE(of_alice.is_forgettable(clock.steady(), 1s));
}

TEST_F(QueryLineTest, ClientWithoutABudgetIsForgottenAsSoonAsNothingIsUnderWay) {
  auto line = line_of({4, 1});
  line.ask(alice, "a1");
  line.ask(alice, "a2");
  clock.advance(3s);
  EXPECT_FALSE(of_alice.is_forgettable(clock.steady(), 0s));
  ended(line, alice);
  EXPECT_FALSE(of_alice.is_forgettable(clock.steady(), 0s));
  ended(line, alice);
  EXPECT_TRUE(of_alice.is_forgettable(clock.steady(), 0s));
}

TEST_F(QueryLineTest, ConnectionThatLeftInTheMiddleOfAReadGivesItsPlaceBack) {
  auto line = line_of({1, 1});
  {
    Line::Customer second{of_alice};
    line.ask(second, "a1");
    line.ask(second, "a2");
    line.ask(bob, "b1");
    line.leave(second);
  }
  line.read_ended(of_alice, nullptr);
  EXPECT_THAT(begun, ElementsAre("a1", "b1"));
}

TEST_F(QueryLineTest, JobThatNeedsNoReadGoesFirst) {
  auto line = line_of({1, 1});
  line.ask(alice, "1");
  line.ask(alice, "2");
  line.ask(alice, "memory");
  EXPECT_THAT(answered, ElementsAre("memory"));
  EXPECT_EQ(waiting(), 1);
}

TEST_F(QueryLineTest, JobsThatAreForgottenAndConnectionsThatLeftAreNotServed) {
  auto line = line_of({1, 1});
  line.ask(alice, "a1");
  line.ask(alice, "a2");
  line.ask(alice, "a3");
  line.ask(bob, "b1");
  line.forget(alice, [](const std::string& job) { return job == "a2"; });
  line.leave(bob);
  ended(line, alice);
  ended(line, alice);
  EXPECT_THAT(begun, ElementsAre("a1", "a3"));
  EXPECT_EQ(waiting(), 0);
}

}  // namespace
}  // namespace todoke::relay::test

// The session alone, without a database.
#include "orders/brokers/fix/engine/session.hpp"

#include <atomic>
#include <future>
#include <iostream>
#include <mutex>

#include "rig.hpp"

namespace todoke::test {
namespace {

using fix::Sent;

class SessionTest : public testing::Test {
 protected:
  std::unique_ptr<fix::Session> open(int next_out = 1, int next_in = 1,
                                     const std::function<void(fix::SessionSettings&)>& change = {}) {
    fix::SessionSettings settings;
    settings.host = "127.0.0.1";
    settings.port = broker.port();
    settings.sender_comp_id = "TODOKE";
    settings.target_comp_id = "BROKER";
    settings.next_out = next_out;
    settings.next_in = next_in;
    if (change) change(settings);
    fix::Events events;
    events.report = [this](fix::Report report) {
      const std::lock_guard lock(mutex);
      reports.push_back(std::move(report));
    };
    events.refused = [this](fix::Refused told) {
      const std::lock_guard lock(mutex);
      refused.push_back(std::move(told));
    };
    events.logged_on = on_logged_on;
    events.reset = [] {};
    events.rejected = [this](const fix::Rejection& rejection) {
      const std::lock_guard lock(mutex);
      rejected.push_back(rejection);
    };
    events.note = [this](const std::string& text) {
      const std::lock_guard lock(mutex);
      notes.push_back(text);
    };
    events.trouble = [](const std::string&) {};
    auto session = std::make_unique<fix::Session>(std::move(settings), std::move(events));
    session->allow_until(std::chrono::steady_clock::time_point::max());
    session->start();
    return session;
  }
  // What both sides have said, where a test fails.
  void TearDown() override {
    if (!HasFailure()) return;
    const std::lock_guard lock(mutex);
    for (const auto& note : notes) std::cerr << "session: " << note << '\n';
    for (const auto* type : {"A", "D", "0", "1", "2", "3", "4", "5"}) {
      for (const auto& message : broker.got(type))
        std::cerr << "broker got " << type << " no. " << message.number << '\n';
    }
  }
  static void await_logon(const fix::Session& session) {
    wait_until("logon", [&] { return session.is_logged_on(); });
  }
  static Sent send(fix::Session& session, const std::string& id, bool poss_resend = false) {
    fix::NewOrder order;
    order.cl_ord_id = id;
    order.symbol = "BTC-USD";
    order.qty = "0.100000000000000001";
    order.price = "64250.50";
    order.poss_resend = poss_resend;
    return wait_for(session, order);
  }
  template <class Message>
  static Sent wait_for(fix::Session& session, const Message& message) {
    auto told = std::make_shared<std::promise<Sent>>();
    EXPECT_TRUE(session.send(message, std::chrono::steady_clock::now() + 30s,
                             [told](Sent sent) { told->set_value(sent); }));
    return told->get_future().get();
  }
  std::size_t reports_so_far() {
    const std::lock_guard lock(mutex);
    return reports.size();
  }

  Broker broker;
  std::function<void(bool)> on_logged_on = [](bool) {};
  std::mutex mutex;
  std::vector<fix::Report> reports;
  std::vector<fix::Refused> refused;
  std::vector<fix::Rejection> rejected;
  std::vector<std::string> notes;
};

TEST_F(SessionTest, AmountsPassAsTextBothWays) {
  broker.answer_orders([](const FixMessage& order) {
    return FixAnswer{{fill(order, "X1", "0.1000000000000000010", "00064250.5000", order.at(38), "64250.5")},
                     false};
  });
  const auto session = open();
  await_logon(*session);
  EXPECT_EQ(send(*session, "amounts-1"), Sent::yes);
  wait_until("a report", [&] { return reports_so_far() == 1; });
  const auto order = broker.got("D").at(0);
  EXPECT_EQ(order.at(38), "0.100000000000000001");
  EXPECT_EQ(order.at(44), "64250.50");
  EXPECT_EQ(order.at(40), "2");
  EXPECT_EQ(order.at(59), "3");
  EXPECT_FALSE(order.poss_resend);
  EXPECT_EQ(reports.at(0).last_qty, "0.1000000000000000010");
  EXPECT_EQ(reports.at(0).last_px, "00064250.5000");
}

TEST_F(SessionTest, PossResendIsMarked) {
  const auto session = open();
  await_logon(*session);
  send(*session, "again-1", true);
  wait_until("the order", [&] { return broker.got("D").size() == 1; });
  EXPECT_TRUE(broker.got("D").at(0).poss_resend);
  EXPECT_FALSE(broker.got("D").at(0).poss_dup);
}

TEST_F(SessionTest, ResendRequestIsAnsweredByAGapFillAndNeverByAnOrder) {
  const auto session = open();
  await_logon(*session);
  send(*session, "resend-1");
  send(*session, "resend-2");
  wait_until("reports", [&] { return reports_so_far() == 4; });
  broker.ask_for_resend(1, 0);
  wait_until("a gap fill", [&] { return broker.got("4").size() == 1; });
  EXPECT_EQ(broker.got("4").at(0).at(123), "Y");
  // The session goes on: what comes next is the next order.
  send(*session, "resend-3");
  wait_until("reports", [&] { return reports_so_far() == 6; });
  EXPECT_EQ(broker.got("D").size(), 3U);
}

TEST_F(SessionTest, NothingLeavesWhileItIsNotLoggedOn) {
  broker.stop();
  const auto session = open();
  EXPECT_EQ(send(*session, "early-1"), Sent::no);
  broker.start();
  await_logon(*session);
  ASSERT_EQ(send(*session, "early-2"), Sent::yes);
  wait_until("reports", [&] { return reports_so_far() == 2; });
  EXPECT_THAT(broker.executed(), testing::ElementsAre("early-2"));
}

TEST_F(SessionTest, NothingLeavesAfterItsLease) {
  const auto session = open();
  await_logon(*session);
  session->allow_until(std::chrono::steady_clock::now());
  EXPECT_EQ(send(*session, "lapsed-1"), Sent::no);
  session->allow_until(std::chrono::steady_clock::time_point::max());
  EXPECT_EQ(send(*session, "lapsed-2"), Sent::yes);
  wait_until("reports", [&] { return reports_so_far() == 2; });
  EXPECT_THAT(broker.executed(), testing::ElementsAre("lapsed-2"));
}

TEST_F(SessionTest, AnOrderPastItsDeadlineIsNotSent) {
  const auto session = open();
  await_logon(*session);
  fix::NewOrder order;
  order.cl_ord_id = "late-1";
  order.symbol = "BTC-USD";
  order.qty = "1";
  const auto told = std::make_shared<std::promise<Sent>>();
  auto sent = told->get_future();
  ASSERT_TRUE(
      session->send(order, std::chrono::steady_clock::now(), [told](Sent how) { told->set_value(how); }));
  EXPECT_EQ(sent.get(), Sent::no);
}

TEST_F(SessionTest, NumbersTooHighOutAndTooLowInMendThemselves) {
  auto session = open();
  await_logon(*session);
  send(*session, "numbers-1");
  wait_until("reports", [&] { return reports_so_far() == 2; });
  const auto numbers = session->numbers();
  session->stop(5s);
  session.reset();
  // As after a crash: reserved numbers that were never used, and a report that was not written down.
  session = open(numbers.next_out + 100, 2);
  await_logon(*session);
  send(*session, "numbers-2", false);
  wait_until("the old reports again, and new ones", [&] { return reports_so_far() == 6; });
  EXPECT_EQ(reports.at(0).exec_id, reports.at(2).exec_id);
  EXPECT_THAT(broker.executed(), testing::ElementsAre("numbers-1", "numbers-2"));
}

// The broker asks for the missing numbers; the gap fill that answers must not pass over the order.
TEST_F(SessionTest, AnOrderThatLeavesAtOnceAfterALogonWithAGapArrives) {
  std::promise<fix::Session*> opened;
  auto opening = opened.get_future();
  std::promise<Sent> sent;
  std::atomic<bool> is_first{true};
  on_logged_on = [&](bool on) {
    if (on && is_first.exchange(false)) sent.set_value(send(*opening.get(), "prompt-1"));
  };
  const auto session = open(101);
  opened.set_value(session.get());
  EXPECT_EQ(sent.get_future().get(), Sent::yes);
  wait_until("reports", [&] { return reports_so_far() == 2; });
  EXPECT_THAT(broker.executed(), testing::ElementsAre("prompt-1"));
}

TEST_F(SessionTest, AReportWithFieldsThatNobodyKnowsIsTaken) {
  broker.answer_orders([](const FixMessage& order) {
    auto report = acknowledge(order);
    report.fields[1128] = "9";
    report.fields[880] = "?";
    report.fields[9999] = "house rule";
    report.fields[60] = "20250824-03:34:56.789123456";
    report.fields[58] = "";
    return FixAnswer{{report}, false};
  });
  const auto session = open();
  await_logon(*session);
  send(*session, "unknown-1");
  wait_until("the report", [&] { return reports_so_far() == 1; });
}

TEST_F(SessionTest, AReportWithRepeatingGroupsIsTakenAndNothingIsRejected) {
  broker.answer_orders([](const FixMessage& order) {
    auto report = fill(order, "G1", "1", "10", "1", "10");
    FixMessage leg;
    leg.fields = {{600, "A"}, {624, "1"}};
    FixMessage sub_leg = leg;
    FixMessage party;
    party.fields = {{524, "X"}, {538, "1"}};
    sub_leg.groups = {{539, 524, {party, party}}};
    FixMessage fee;
    fee.fields = {{137, "0.1"}, {139, "4"}};
    FixMessage underlying;
    underlying.fields = {{311, "U"}};
    FixMessage alt;
    alt.fields = {{455, "1"}, {456, "4"}};
    report.groups.push_back({555, 600, {leg, sub_leg}});
    report.groups.push_back({136, 137, {fee, fee}});
    report.groups.push_back({711, 311, {underlying, underlying}});
    report.groups.push_back({454, 455, {alt, alt}});
    return FixAnswer{{report}, false};
  });
  const auto session = open();
  await_logon(*session);
  send(*session, "groups-1");
  wait_until("the report", [&] { return reports_so_far() == 1; });
  EXPECT_EQ(reports.at(0).last_qty, "1");
  EXPECT_EQ(reports.at(0).cl_ord_id, "groups-1");
  EXPECT_EQ(broker.got("3").size(), 0U);
  EXPECT_TRUE(rejected.empty());
}

TEST_F(SessionTest, AReportWithAGroupThatNobodyKnowsIsRejectedAndTakenAllTheSame) {
  broker.answer_orders([](const FixMessage& order) {
    auto odd = fill(order, "O1", "1", "10", "1", "10");
    odd.repeated = {{20001, "2"}, {20002, "a"}, {20002, "b"}};
    return FixAnswer{{odd, fill(order, "O2", "1", "10", "2", "10")}, false};
  });
  const auto session = open();
  await_logon(*session);
  send(*session, "odd-1");
  wait_until("both reports", [&] { return reports_so_far() == 2; });
  EXPECT_EQ(reports.at(0).exec_id, "O1");
  EXPECT_EQ(reports.at(0).last_qty, "1");
  EXPECT_EQ(reports.at(1).exec_id, "O2");
  ASSERT_EQ(rejected.size(), 1U);
  EXPECT_FALSE(rejected.at(0).business);
  EXPECT_EQ(rejected.at(0).msg_type, "8");
  EXPECT_EQ(rejected.at(0).tag, "20002");
  EXPECT_EQ(rejected.at(0).reason, "13");
  EXPECT_TRUE(rejected.at(0).was_rescued);
}

TEST_F(SessionTest, AReportOfBadFormWithoutATimeHasTheTimeAtWhichItWasSent) {
  broker.answer_orders([](const FixMessage& order) {
    auto odd = fill(order, "O1", "1", "10.5", "1", "10.5");
    odd.fields.erase(60);
    odd.repeated = {{20001, "2"}, {20002, "a"}, {20002, "b"}};
    return FixAnswer{{odd}, false};
  });
  const auto session = open();
  await_logon(*session);
  send(*session, "timeless-1");
  wait_until("the report", [&] { return reports_so_far() == 1; });
  EXPECT_TRUE(rejected.at(0).was_rescued);
  EXPECT_THAT(reports.at(0).transact_time, testing::MatchesRegex("20[0-9]{6}-[0-9:.]+"));
}

TEST_F(SessionTest, AMessageThatIsNotTakenIsToldAsRejected) {
  const auto session = open();
  await_logon(*session);
  FixMessage cancel_reject;
  cancel_reject.type = "9";  // without a ClOrdID
  cancel_reject.fields = {{37, "B-1"}};
  broker.send(cancel_reject);
  FixMessage news;
  news.type = "D";  // nobody orders here
  news.fields = {{11, "x"}, {55, "y"}, {54, "1"}, {60, "20250824-03:34:56"}, {38, "1"}, {40, "1"}};
  broker.send(news);
  wait_until("both", [&] {
    const std::lock_guard lock(mutex);
    return rejected.size() == 2;
  });
  EXPECT_EQ(rejected.at(0).msg_type, "9");
  EXPECT_FALSE(rejected.at(0).was_rescued);
  EXPECT_FALSE(rejected.at(0).business);
  EXPECT_EQ(rejected.at(1).msg_type, "D");
  EXPECT_TRUE(rejected.at(1).business);
}

TEST_F(SessionTest, ARejectIsTracedBackToItsOrder) {
  broker.answer_orders([](const FixMessage& order) {
    FixMessage session_reject;
    session_reject.type = "3";
    session_reject.fields = {{45, std::to_string(order.number)}, {373, "5"}};
    FixMessage business;
    business.type = "j";
    business.fields = {{372, "D"}, {379, order.at(11)}, {380, "4"}};
    return FixAnswer{{session_reject, business}, false};
  });
  const auto session = open();
  await_logon(*session);
  send(*session, "refused-1");
  wait_until("both", [&] {
    const std::lock_guard lock(mutex);
    return refused.size() == 2;
  });
  EXPECT_EQ(refused.at(0).cl_ord_id, "refused-1");
  EXPECT_TRUE(refused.at(0).of_order);
  EXPECT_FALSE(refused.at(0).business);
  EXPECT_EQ(refused.at(1).cl_ord_id, "refused-1");
  EXPECT_EQ(refused.at(1).reason, "4");
  EXPECT_TRUE(refused.at(1).business);
}

TEST_F(SessionTest, CredentialsGoWithTheLogonAndNowhereElse) {
  const auto session = open(1, 1, [](fix::SessionSettings& settings) {
    settings.username = "trader";
    settings.password = "s3cret";
  });
  await_logon(*session);
  EXPECT_EQ(broker.last_logon_password(), "s3cret");
  const std::lock_guard lock(mutex);
  for (const auto& note : notes) EXPECT_EQ(note.find("s3cret"), std::string::npos) << note;
}

TEST_F(SessionTest, ResetOnLogonBeginsWithOne) {
  auto session = open();
  await_logon(*session);
  send(*session, "reset-1");
  wait_until("reports", [&] { return reports_so_far() == 2; });
  session->stop(5s);
  session.reset();
  session = open(500, 500, [](fix::SessionSettings& settings) { settings.reset_on_logon = true; });
  await_logon(*session);
  EXPECT_GE(session->numbers().resets, 1U);
  EXPECT_LE(session->numbers().next_out, 3);
  send(*session, "reset-2");
  wait_until("reports", [&] { return reports_so_far() == 4; });
}

}  // namespace
}  // namespace todoke::test

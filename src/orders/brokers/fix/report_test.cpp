#include "orders/brokers/fix/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orders/brokers/fix/ledger.hpp"

namespace todoke::orders {
namespace {

using State = FixView::State;
using testing::ElementsAre;
using testing::IsEmpty;

fix::Report report(const std::string& exec_id, const std::string& exec_type, const std::string& ord_status) {
  fix::Report made;
  made.cl_ord_id = "c";
  made.order_id = "B-1";
  made.exec_id = exec_id;
  made.exec_type = exec_type;
  made.ord_status = ord_status;
  made.transact_time = "20250824-03:34:56.789";
  return made;
}

fix::Report trade(const std::string& exec_id, const std::string& qty, const std::string& px,
                  const std::string& cum_qty, const std::string& ord_status = "1") {
  auto made = report(exec_id, "F", ord_status);
  made.last_qty = qty;
  made.last_px = px;
  made.cum_qty = cum_qty;
  return made;
}

std::vector<std::string> quantities(const FixView& view) {
  std::vector<std::string> list;
  for (const auto& fill : view.fills) list.push_back(fill.qty.text() + "@" + fill.px.text());
  return list;
}

Order order_of(TimeInForce time_in_force) {
  Order order;
  order.qty = 2;
  order.price = *Decimal::parse("10.5");
  order.time_in_force = time_in_force;
  return order;
}

TEST(FixView, NoReportSaysNothing) {
  EXPECT_EQ(view_of({}, TimeInForce::ioc).state, State::unknown);
}

TEST(FixView, EveryOrdStatusHasItsState) {
  const auto state = [](const std::string& ord_status, TimeInForce time_in_force) {
    return view_of({report("1", ord_status, ord_status)}, time_in_force).state;
  };
  for (const auto* working : {"0", "1", "5", "6", "7", "9", "B", "E"}) {
    EXPECT_EQ(state(working, TimeInForce::gtc), State::working) << working;
  }
  for (const auto* over : {"2", "4", "C"}) EXPECT_EQ(state(over, TimeInForce::gtc), State::ended) << over;
  EXPECT_EQ(state("A", TimeInForce::ioc), State::pending);
  EXPECT_EQ(state("8", TimeInForce::ioc), State::rejected);
  EXPECT_EQ(state("3", TimeInForce::gtc), State::working);
  EXPECT_EQ(state("3", TimeInForce::ioc), State::ended);
}

TEST(FixView, AKnownExecIdCountsOnce) {
  const auto view = view_of(
      {trade("1", "0.5", "10", "0.5"), trade("1", "0.5", "10", "0.5"), trade("2", "1.5", "11", "2", "2")},
      TimeInForce::ioc);
  EXPECT_THAT(quantities(view), ElementsAre("0.5@10", "1.5@11"));
  EXPECT_EQ(view.state, State::ended);
}

TEST(FixView, ACorrectionReplacesAndABustRemoves) {
  auto correction = trade("3", "0.4", "9", "1.9");
  correction.exec_type = "G";
  correction.exec_ref_id = "1";
  auto bust = report("4", "H", "1");
  bust.exec_ref_id = "2";
  bust.cum_qty = "0.4";
  const auto view = view_of({trade("1", "0.5", "10", "0.5"), trade("2", "1.5", "11", "2"), correction, bust},
                            TimeInForce::gtc);
  EXPECT_THAT(quantities(view), ElementsAre("0.4@9"));
}

TEST(FixView, WhatTheBrokerCountsBeyondItsReportsIsOneFillAtThePriceThatGivesItsAverage) {
  auto last = trade("2", "1", "12", "2", "2");
  last.avg_px = "11";
  EXPECT_THAT(quantities(view_of({last}, TimeInForce::ioc)), ElementsAre("1@12", "1@10"));
  auto answer = report("0", "I", "2");
  answer.cum_qty = "2";
  answer.avg_px = "10.25";
  EXPECT_THAT(quantities(view_of({answer}, TimeInForce::ioc)), ElementsAre("2@10.25"));
}

TEST(FixView, ADuplicateIsNoRejectionOfTheOrder) {
  auto duplicate = report("9", "8", "8");
  duplicate.ord_rej_reason = "6";
  EXPECT_TRUE(view_of({duplicate}, TimeInForce::ioc).is_duplicate);
  EXPECT_EQ(view_of({duplicate}, TimeInForce::ioc).state, State::unknown);
  EXPECT_EQ(view_of({report("1", "0", "0"), duplicate}, TimeInForce::gtc).state, State::working);
}

TEST(FixView, AnUnknownOrderIsSaidOnlyByAnAnswerToAStatusRequest) {
  auto answer = report("0", "I", "8");
  answer.ord_rej_reason = "5";
  EXPECT_TRUE(view_of({answer}, TimeInForce::ioc).is_unknown);
  auto rejected = report("1", "8", "8");
  rejected.ord_rej_reason = "5";
  EXPECT_FALSE(view_of({rejected}, TimeInForce::ioc).is_unknown);
  EXPECT_EQ(view_of({rejected}, TimeInForce::ioc).state, State::rejected);
}

TEST(FixView, OnceTakenARejectionEndsTheOrder) {
  EXPECT_EQ(view_of({report("1", "0", "0"), report("2", "8", "8")}, TimeInForce::gtc).state, State::ended);
}

TEST(FixView, AnAmountThatCannotBeReadIsToldAndNotGuessed) {
  const auto view = view_of({report("1", "0", "0"), trade("2", "1e3", "10", "2")}, TimeInForce::gtc);
  EXPECT_TRUE(view.is_unreadable);
  EXPECT_THAT(view.fills, IsEmpty());
}

TEST(FixResult, WarningsFollowTheState) {
  const auto gtc = order_of(TimeInForce::gtc);
  EXPECT_THAT(result_of(view_of({report("1", "0", "0")}, gtc.time_in_force), gtc).warnings,
              ElementsAre("WORKING"));
  EXPECT_THAT(result_of(view_of({report("1", "4", "4")}, gtc.time_in_force), gtc).warnings,
              ElementsAre("UNFILLED"));
  EXPECT_THAT(result_of(view_of({trade("1", "2", "10", "2", "2")}, gtc.time_in_force), gtc).warnings,
              IsEmpty());
  const auto rejected = result_of(view_of({report("1", "8", "8")}, gtc.time_in_force), gtc);
  EXPECT_EQ(rejected.reason_code, "BROKER_REJECTED");
}

TEST(FixResult, IsNotBroughtBackToWhatReportsSayOfLessThanTheBrokerHasAnswered) {
  const auto ioc = order_of(TimeInForce::ioc);
  const auto settled = result_of(view_of({trade("9", "2", "10", "2", "2")}, ioc.time_in_force), ioc);
  const std::vector<fix::Report> reports{report("1", "0", "0"), trade("2", "0.5", "10", "0.5")};
  auto result = settled;
  EXPECT_FALSE(bring_up_to_date(result, view_of(reports, ioc.time_in_force), ioc));
  EXPECT_EQ(result.executed_qty.text(), "2");
  auto all = reports;
  all.push_back(trade("3", "1.5", "10", "2", "2"));
  EXPECT_TRUE(bring_up_to_date(result, view_of(all, ioc.time_in_force), ioc));
  EXPECT_EQ(result.fills.size(), 2U);
  auto busted = all;
  busted.push_back(report("4", "H", "1"));
  busted.back().exec_ref_id = "3";
  busted.back().cum_qty = "0.5";
  EXPECT_TRUE(bring_up_to_date(result, view_of(busted, ioc.time_in_force), ioc));
  EXPECT_EQ(result.executed_qty.text(), "0.5");
}

TEST(FixResult, IsBroughtUpToDateOnlyWhereSomethingIsNew) {
  const auto gtc = order_of(TimeInForce::gtc);
  const std::vector<fix::Report> reports{report("1", "0", "0"), trade("2", "0.5", "10", "0.5")};
  auto result = result_of(view_of(reports, gtc.time_in_force), gtc);
  result.warnings.emplace_back("RISK_NOT_ENFORCED");
  EXPECT_FALSE(bring_up_to_date(result, view_of(reports, gtc.time_in_force), gtc));
  auto more = reports;
  more.push_back(trade("3", "1.5", "10.5", "2", "2"));
  EXPECT_TRUE(bring_up_to_date(result, view_of(more, gtc.time_in_force), gtc));
  EXPECT_EQ(result.executed_qty.text(), "2");
  EXPECT_EQ(result.cost.text(), "20.75");
  EXPECT_THAT(result.warnings, ElementsAre("RISK_NOT_ENFORCED"));
}

TEST(FixNumber, IsReadAsFixWritesIt) {
  EXPECT_EQ(fix_decimal("00023.230")->text(), "23.23");
  EXPECT_EQ(fix_decimal(".5")->text(), "0.5");
  EXPECT_EQ(fix_decimal("5.")->text(), "5");
  EXPECT_EQ(fix_decimal("-1.5")->text(), "-1.5");
  EXPECT_EQ(fix_decimal("0.100000000000000001")->text(), "0.100000000000000001");
  for (const auto* bad : {"", ".", "-", "1e3", "+1", "1,5", "1.2.3", " 1", "NaN"}) {
    EXPECT_FALSE(fix_decimal(bad)) << bad;
  }
}

TEST(FixTime, IsReadWithAnyFraction) {
  using std::chrono::milliseconds;
  const auto whole = fix_time("20250824-03:34:56");
  ASSERT_TRUE(whole);
  EXPECT_EQ(fix_time("20250824-03:34:56.789"), *whole + milliseconds(789));
  EXPECT_EQ(fix_time("20250824-03:34:56.789000000"), *whole + milliseconds(789));
  EXPECT_FALSE(fix_time("2025-08-24T03:34:56Z"));
  EXPECT_FALSE(fix_time(""));
}

}  // namespace
}  // namespace todoke::orders

#include "orders/brokers/fix/report.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/timestamp.hpp"
#include "orders/core/exec_result.hpp"

namespace todoke::orders {
namespace {

using fix::Report;
using State = FixView::State;

constexpr std::string_view kUnknownOrder = "5";    // OrdRejReason
constexpr std::string_view kDuplicateOrder = "6";  // OrdRejReason

struct NamedFill {
  std::string exec_id;
  Fill fill;
};

bool is_trade(const Report& report) {
  // 1 and 2 are how FIX 4.2 said it; some brokers still do.
  return report.exec_type == "F" || report.exec_type == "1" || report.exec_type == "2";
}

State state_of(const std::string& ord_status, TimeInForce time_in_force) {
  if (ord_status == "A") return State::pending;
  if (ord_status == "8") return State::rejected;
  if (ord_status == "2" || ord_status == "4" || ord_status == "C") return State::ended;
  if (ord_status == "3") return time_in_force == TimeInForce::gtc ? State::working : State::ended;
  return State::working;
}

std::optional<Fill> fill_of(const Report& report) {
  const auto px = fix_decimal(report.last_px);
  const auto qty = fix_decimal(report.last_qty);
  if (!px || !qty) return std::nullopt;
  return Fill{*px, *qty, fix_time(report.transact_time).value_or(SystemTime{})};
}

// Applies `report` to the fills. False: its amounts can't be read.
bool apply_fill(std::vector<NamedFill>& fills, const Report& report) {
  const auto referred = std::find_if(
      fills.begin(), fills.end(), [&](const NamedFill& fill) { return fill.exec_id == report.exec_ref_id; });
  if (report.exec_type == "H") {
    if (referred != fills.end()) fills.erase(referred);
    return true;
  }
  if (!is_trade(report) && report.exec_type != "G") return true;
  const auto fill = fill_of(report);
  if (!fill) return false;
  if (report.exec_type == "G" && referred != fills.end()) {
    *referred = {report.exec_id, *fill};
  } else if (!fill->qty.is_zero()) {
    fills.push_back({report.exec_id, *fill});
  }
  return true;
}

// Adds the quantity that the broker counts beyond the fills of its reports.
void add_missed(std::vector<Fill>& fills, const Report& last) {
  const auto counted = fix_decimal(last.cum_qty);
  if (!counted) return;
  Decimal qty;
  Decimal cost;
  for (const auto& fill : fills) {
    qty += fill.qty;
    cost += fill.px * fill.qty;
  }
  const auto missed = *counted - qty;
  if (!missed.is_positive()) return;
  const auto average = fix_decimal(last.avg_px);
  if (!average) return;
  fills.push_back({(*average * *counted - cost).divided_by(missed), missed,
                   fix_time(last.transact_time).value_or(SystemTime{})});
}

void apply_state(FixView& view, const Report& report, TimeInForce time_in_force) {
  const auto said = state_of(report.ord_status, time_in_force);
  if (said == State::rejected && report.ord_rej_reason == kDuplicateOrder) {
    view.is_duplicate = true;
    return;
  }
  if (said == State::rejected && is_status(report) && report.ord_rej_reason == kUnknownOrder) {
    view.is_unknown = true;
    return;
  }
  // An acknowledged order stays acknowledged: a rejection afterwards ends it.
  if (said == State::rejected && view.is_acknowledged()) {
    view.state = State::ended;
  } else if (said != State::pending || !view.is_acknowledged()) {
    view.state = said;
  }
  if (said == State::rejected) view.reject_reason = report.ord_rej_reason;
  if (!report.order_id.empty() && report.order_id != "NONE") view.order_ref = report.order_id;
}

bool all_digits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

bool is_status(const Report& report) {
  return report.exec_type == "I";
}

Report unknown_order(std::string cl_ord_id) {
  Report report;
  report.cl_ord_id = std::move(cl_ord_id);
  report.exec_type = "I";
  report.ord_status = "8";
  report.ord_rej_reason = kUnknownOrder;
  return report;
}

FixView view_of(const std::vector<Report>& reports, TimeInForce time_in_force) {
  FixView view;
  std::vector<NamedFill> fills;
  std::set<std::string> seen;
  const Report* last_count = nullptr;
  for (const auto& report : reports) {
    // The answer to a status request may have any ExecID.
    if (!is_status(report) && !seen.insert(report.exec_id).second) continue;
    apply_state(view, report, time_in_force);
    if (report.exec_type == "G" || report.exec_type == "H") view.is_corrected = true;
    if (!apply_fill(fills, report)) {
      view.is_unreadable = true;
      continue;
    }
    if (!report.cum_qty.empty() && report.ord_status != "8") last_count = &report;
  }
  for (auto& named : fills) view.fills.push_back(std::move(named.fill));
  if (last_count != nullptr) add_missed(view.fills, *last_count);
  if (!view.fills.empty() && !view.is_acknowledged()) view.state = State::working;
  return view;
}

ExecResult result_of(const FixView& view, const Order& order) {
  ExecResult result;
  result.broker = {"fix", view.order_ref};
  if (!view.is_acknowledged()) {
    result.status = ExecStatus::error;
    result.reason_code = reason::kBrokerRejected;
    return result;
  }
  result.status = ExecStatus::ok;
  result.fills = view.fills;
  sum_fills(result, order);
  result.warnings.clear();
  if (view.is_unreadable) result.warnings.emplace_back(warning::kUnreadable);
  if (view.state == FixView::State::working) result.warnings.emplace_back(warning::kWorking);
  if (view.state == FixView::State::ended && result.executed_qty.is_zero() && !view.is_unreadable) {
    result.warnings.emplace_back(warning::kUnfilled);
  }
  return result;
}

std::optional<Decimal> fix_decimal(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  const auto point = text.find('.');
  auto whole = text.substr(0, point);
  const auto fraction = point == std::string_view::npos ? std::string_view() : text.substr(point + 1);
  if ((whole.empty() && fraction.empty()) || !all_digits(whole) || !all_digits(fraction)) return std::nullopt;
  while (whole.size() > 1 && whole.front() == '0') whole.remove_prefix(1);
  const auto number = fmt::format("{}{}.{}", is_negative ? "-" : "", whole.empty() ? "0" : whole,
                                  fraction.empty() ? "0" : fraction);
  const auto parsed = Decimal::parse(number);
  if (!parsed) return std::nullopt;
  return *parsed;
}

std::optional<SystemTime> fix_time(std::string_view text) {
  constexpr std::size_t kToSeconds = 17;  // 20250824-03:34:56
  if (text.size() < kToSeconds || text[8] != '-') return std::nullopt;
  return parse_timestamp(
      fmt::format("{}-{}-{}T{}Z", text.substr(0, 4), text.substr(4, 2), text.substr(6, 2), text.substr(9)));
}

}  // namespace todoke::orders

#include "orders/brokers/fix/adapter.hpp"

#include <utility>

#include <fmt/format.h>

#include "orders/brokers/fix/id.hpp"
#include "orders/core/order.hpp"
#include "pg/error.hpp"

namespace todoke::orders {
namespace {

using State = FixView::State;

// BusinessRejectReason
constexpr std::string_view kUnknownId = "1";
constexpr std::string_view kNotAvailable = "4";
constexpr std::string_view kFirmNotAvailable = "8";

char side_of(const Order& order) {
  return order.side == Side::buy ? '1' : '2';
}

char time_in_force_of(const Order& order) {
  switch (order.time_in_force) {
    case TimeInForce::gtc:
      return '1';
    case TimeInForce::ioc:
      return '3';
    case TimeInForce::fok:
      return '4';
  }
  return '3';
}

fix::NewOrder new_order(const SendRequest& request, const std::string& account) {
  const auto& order = *request.order;
  fix::NewOrder made;
  made.cl_ord_id = request.broker_id;
  made.account = account;
  made.symbol = order.instrument;
  made.side = side_of(order);
  made.qty = order.qty.text();
  if (order.price) made.price = order.price->text();
  made.time_in_force = time_in_force_of(order);
  made.poss_resend = request.possible_resend;
  return made;
}

std::string unread_in(const FixView& view) {
  return view.is_unreadable ? "LastQty or LastPx of a report" : "";
}

// The outcome that a view gives; nothing while more reports have to come. `is_last`: the caller waits no
// longer.
std::optional<SendOutcome> outcome_of(const FixView& view, const Order& order, bool is_last) {
  SendOutcome outcome;
  if (view.state == State::rejected) {
    outcome.result = result_of(view, order);
    outcome.message = fmt::format("the broker rejected the order (OrdRejReason {})",
                                  view.reject_reason.empty() ? "none" : view.reject_reason);
    return outcome;
  }
  const bool waits_for_end = view.state == State::working && order.time_in_force != TimeInForce::gtc;
  if (view.is_acknowledged() && (!waits_for_end || is_last)) {
    outcome.result = result_of(view, order);
    outcome.unread = unread_in(view);
    return outcome;
  }
  if (view.is_duplicate && !view.is_acknowledged()) {
    outcome = failure(reason::kBrokerRejected, "the broker says that it has the order already", false);
    outcome.duplicate = true;
    return outcome;
  }
  return std::nullopt;
}

SendOutcome outcome_of(const fix::Refused& refused) {
  const bool is_down =
      refused.business && (refused.reason == kNotAvailable || refused.reason == kFirmNotAvailable);
  return failure(is_down ? reason::kBrokerDown : reason::kBrokerRejected,
                 fmt::format("the broker refused the message ({} {})",
                             refused.business ? "BusinessRejectReason" : "SessionRejectReason",
                             refused.reason.empty() ? "none" : refused.reason),
                 false);
}

FindOutcome found(const FixView& view, const Order& order) {
  FindOutcome outcome;
  outcome.answer = FindAnswer::found;
  outcome.result = result_of(view, order);
  outcome.unread = unread_in(view);
  return outcome;
}

bool is_known(const FixView& view) {
  return view.is_acknowledged() || view.state == State::rejected;
}

// Whether the broker may know more of an order than its reports say: an order that must not wait (IOC, FOK)
// should have ended.
bool may_have_ended(const FixView& view, const Order& order) {
  return view.state == State::working && order.time_in_force != TimeInForce::gtc;
}

}  // namespace

std::string FixAdapter::broker_id(const std::string& idempotency_key) const {
  return cl_ord_id(idempotency_key, link_->options().cl_ord_id_max);
}

Task<SendOutcome> FixAdapter::send(SendRequest request, Deadline deadline) {
  std::string why;
  if (!link_->is_open(why)) co_return held_back();
  auto awaited = link_->await(request.broker_id);
  FixEntry entry{request.broker_id, request.outbox_id, request.idempotency_key};
  const bool is_written = co_await link_->write_down(std::move(entry), deadline);
  if (!is_written || !link_->is_open(why) || !request.may_go()) co_return held_back();
  const auto order = new_order(request, link_->options().account);
  if (!link_->send(order, deadline, awaited)) {
    co_return failure(reason::kBrokerDown, "too many messages wait for the FIX session", false);
  }
  co_return co_await wait_for_outcome(request, std::move(awaited), deadline);
}

Task<SendOutcome> FixAdapter::wait_for_outcome(const SendRequest& request,
                                               std::shared_ptr<FixAwaited> awaited, Deadline deadline) {
  const auto& order = *request.order;
  std::string why;
  for (;;) {
    const bool has_changed = co_await awaited->changed.wait_for(deadline.left());
    awaited->changed.reset();
    const auto view = view_of(awaited->reports, order.time_in_force);
    if (auto outcome = outcome_of(view, order, !has_changed)) co_return std::move(*outcome);
    if (awaited->refused && awaited->refused->of_order) co_return outcome_of(*awaited->refused);
    if (awaited->sent == fix::Sent::no && !deadline.passed()) {
      if (!link_->is_open(why)) co_return held_back();
      co_return failure(reason::kBrokerDown, "the FIX session was lost before the order left", false);
    }
    if (!has_changed) break;
  }
  if (!link_->is_open(why)) co_return failure(reason::kBrokerDown, "sent, then lost: " + why, true);
  co_return failure(reason::kBrokerTimeout, "no answer in time", true);
}

Task<FindOutcome> FixAdapter::find(SendRequest request, Deadline deadline) {
  std::exception_ptr broken;
  FixStored stored;
  try {
    stored = co_await link_->stored(request.broker_id, request.outbox_id, deadline);
  } catch (const pg::DatabaseError&) {
    broken = std::current_exception();
  }
  if (broken) co_return unknown(describe(broken));
  const auto view = view_of(stored.reports, request.order->time_in_force);
  std::string why;
  const bool is_open = link_->is_open(why);
  if (is_known(view) && !(is_open && may_have_ended(view, *request.order))) {
    co_return found(view, *request.order);
  }
  if (!is_open) co_return not_asked(std::move(why));
  const bool keeps = stored.is_order;
  co_return co_await ask(request, std::move(stored), keeps, deadline);
}

Task<FindOutcome> FixAdapter::ask_broker(SendRequest request, Deadline deadline) {
  std::string why;
  if (!link_->is_open(why)) co_return not_asked(std::move(why));
  if (link_->is_awaited(request.broker_id)) co_return unknown("the order is being sent at this moment");
  FixStored nothing;
  co_return co_await ask(request, std::move(nothing), true, deadline);
}

Task<FindOutcome> FixAdapter::ask(const SendRequest& request, FixStored stored, bool keeps,
                                  Deadline deadline) {
  const auto& order = *request.order;
  const auto awaited = link_->await(request.broker_id);
  awaited->answers_only = !stored.is_order;
  awaited->keeps_answers = keeps;
  // The answer to an earlier question does not answer this one.
  std::erase_if(stored.reports, is_status);
  awaited->reports = std::move(stored.reports);
  fix::StatusRequest question;
  question.cl_ord_id = request.broker_id;
  question.account = link_->options().account;
  question.symbol = order.instrument;
  question.side = side_of(order);
  if (!link_->send(question, deadline, awaited)) {
    co_return unknown("too many messages wait for the FIX session");
  }
  for (;;) {
    const bool has_changed = co_await awaited->changed.wait_for(deadline.left());
    awaited->changed.reset();
    auto all = awaited->reports;
    all.insert(all.end(), awaited->answers.begin(), awaited->answers.end());
    const auto view = view_of(all, order.time_in_force);
    const bool may_answer =
        has_changed && awaited->answers.empty() && !awaited->refused && awaited->sent != fix::Sent::no;
    const bool waits = may_answer && may_have_ended(view, order);
    if (is_known(view) && !waits) co_return found(view, order);
    if (view.is_unknown) co_return FindOutcome{FindAnswer::not_found, {}, {}};
    if (awaited->refused && !awaited->refused->of_order) {
      const auto& refused = *awaited->refused;
      if (refused.business && refused.reason == kUnknownId) {
        if (awaited->keeps_answers) link_->keep_status(unknown_order(request.broker_id));
        co_return FindOutcome{FindAnswer::not_found, {}, {}};
      }
      co_return unknown("the broker refused the status request");
    }
    if (awaited->sent == fix::Sent::no)
      co_return not_asked("the FIX session was lost before the request left");
    if (!has_changed) co_return unknown("no answer in time");
  }
}

}  // namespace todoke::orders

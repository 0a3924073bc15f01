#include "orders/worker/handler.hpp"

#include <algorithm>
#include <utility>

#include "base/attempt.hpp"
#include "base/log.hpp"
#include "base/timestamp.hpp"
#include "orders/core/exec_result.hpp"
#include "orders/core/order.hpp"

namespace todoke::orders {
namespace {

using queue::Outcome;
using queue::Reach;
using queue::RowStatus;
using queue::Step;
using Ended = queue::Handler::Ended;

Ended give_back() {
  return Ended{.outcome = {.kind = Outcome::Kind::untouched}};
}

}  // namespace

std::chrono::milliseconds MaxAge::of(TimeInForce time_in_force) const {
  switch (time_in_force) {
    case TimeInForce::ioc:
      return ioc;
    case TimeInForce::fok:
      return fok;
    case TimeInForce::gtc:
      return gtc;
  }
  return ioc;
}

OrderHandler::OrderHandler(HandlerOptions options, BrokerAdapter& adapter, Halts& halts, const Clock& clock,
                           Tracer& tracer, OrderMetrics& metrics)
    : options_(options),
      adapter_(adapter),
      halts_(halts),
      clock_(clock),
      tracer_(tracer),
      metrics_(metrics) {}

Task<Ended> OrderHandler::handle(queue::Job& job, const queue::Hold& hold) {
  auto& order = static_cast<OrderJob&>(job);
  auto span = tracer_.start(
      "outbox.process", order.trace_id ? parse_traceparent(*order.trace_id) : std::optional<TraceContext>());
  span.set("idempotency_key_hash", order.key_hash);
  span.set("outbox_id", order.ticket.id.value);
  span.set("attempts", static_cast<std::int64_t>(order.row.attempts));
  const auto ended = co_await handle_order(order, hold, span);
  if (!order.error_code.empty()) {
    span.set("reason_code", order.error_code);
    span.fail();
  }
  co_return ended;
}

Ended OrderHandler::fail(OrderJob& job, std::string_view code, std::string message, Outcome outcome) const {
  job.error_code = code;
  job.error_msg = std::move(message);
  job.result.status = ExecStatus::error;
  job.result.reason_code = code;
  std::optional<Reach> reach;
  if (is_unreachable(code)) reach = Reach::unreachable;
  if (code == reason::kBrokerRejected) reach = Reach::reached;
  // An operator who allows one try, with a broker that can't be asked, wants nothing sent twice, whatever the
  // breaker says.
  outcome.counts_always = options_.attempts_max == 1 && outcome.in_doubt && !adapter_.can_find();
  return Ended{outcome, reach};
}

Task<Ended> OrderHandler::handle_order(OrderJob& job, const queue::Hold& hold, Span& span) {
  constexpr Outcome kRefused{.kind = Outcome::Kind::permanent, .was_tried = false};
  if (job.follows_ledger()) co_return give_back();
  const auto step = queue::next_step(job.row, options_.attempts_max, adapter_.can_find());
  auto parsed = parse_order(job.document);
  if (!parsed)
    co_return fail(job, reason::kValidationError, "no valid order: " + parsed.error().text(), kRefused);
  job.order = std::move(*parsed);
  if (job.order->idempotency_key != job.key) {
    co_return fail(job, reason::kValidationError, "no valid order: its key is another than the row's",
                   kRefused);
  }
  // The worker asks or sends only if the try ends while the order is ours, and if the adapter can send.
  if (!hold.allows(options_.broker_timeout) || !adapter_.can_send_now()) co_return give_back();

  if (step == Step::look_up_then_try || step == Step::look_up_then_give_up) {
    if (auto found = co_await look_up(job)) co_return *found;
  }
  if (step == Step::give_up || step == Step::look_up_then_give_up) {
    co_return fail(job, job.last_error_code.value_or(std::string(reason::kInternalError)),
                   job.last_error_msg.value_or("no try is left"), kRefused);
  }
  if (options_.strict_risk && job.order->risk_constraints && !adapter_.enforces_risk()) {
    co_return fail(job, reason::kValidationError, "its risk_constraints can't be enforced by this broker",
                   kRefused);
  }
  if (is_too_old(job)) {
    co_return fail(job, reason::kOrderExpired, "not sent within its orders.max_age_sec", kRefused);
  }
  const bool is_stopped = co_await is_halted_now(job);
  if (is_stopped || !hold.allows(options_.broker_timeout)) co_return give_back();
  co_return co_await send(job, span);
}

// A switch that can't be read counts as thrown.
Task<bool> OrderHandler::is_halted_now(const OrderJob& job) {
  const auto halts = co_await attempt(halts_.current());
  if (halts) co_return is_halted(**halts, adapter_.name(), job.order->instrument);
  log::warning("orders", "an order is not sent: the kill switch can't be read",
               {{"idempotency_key", job.key_hash}, {"error", describe(halts.error())}});
  co_return true;
}

SendRequest OrderHandler::request(const OrderJob& job) const {
  SendRequest request;
  request.order = &*job.order;
  request.idempotency_key = job.key;
  request.outbox_id = job.ticket.id.value;
  request.broker_id = adapter_.broker_id(job.key);
  request.claim_no = job.ticket.claim.value;
  request.possible_resend = job.row.in_doubt;
  return request;
}

Task<std::optional<Ended>> OrderHandler::look_up(OrderJob& job) {
  const auto began = clock_.now();
  const auto began_steady = clock_.steady();
  auto asked = request(job);
  auto answer = co_await attempt(adapter_.find(asked, Deadline::after(options_.broker_timeout)));
  auto found = answer ? std::move(*answer) : FindOutcome{FindAnswer::unknown, {}, describe(answer.error())};
  // A try may reach the broker after this question: the order stays in doubt.
  if (found.answer == FindAnswer::not_found) co_return std::nullopt;
  if (!found.was_asked && !job.tried) co_return give_back();
  if (!job.tried) {
    job.tried = TryRecord{asked.broker_id, began, clock_.now(), clock_.steady() - began_steady, {}, {}, {}};
  }
  if (found.answer == FindAnswer::found) {
    SendOutcome outcome;
    outcome.result = std::move(found.result);
    outcome.unread = std::move(found.unread);
    const auto ended = end_with(job, std::move(outcome), true);
    job.tried->outcome = "FOUND";
    co_return ended;
  }
  job.tried->outcome = reason::kBrokerDown;
  co_return fail(job, reason::kBrokerDown, "the order could not be looked up: " + found.message,
                 Outcome{.kind = Outcome::Kind::transient, .in_doubt = true});
}

Task<Ended> OrderHandler::send(OrderJob& job, Span& span) {
  auto child = tracer_.start("broker.send", span.context());
  child.set("adapter", std::string(adapter_.name()));
  auto asked = request(job);
  asked.trace = child.context();
  asked.may_go = [this, &job] { return halts_.lets_go(adapter_.name(), job.order->instrument); };
  job.tried = TryRecord{asked.broker_id, clock_.now(), {}, {}, {}, std::nullopt, {}};
  const auto began = clock_.steady();
  auto answer = co_await attempt(adapter_.send(asked, Deadline::after(options_.broker_timeout)));
  auto outcome = answer ? std::move(*answer) : SendOutcome();
  if (outcome.held_back) {
    job.tried.reset();
    co_return give_back();
  }
  job.tried->took = clock_.steady() - began;
  const auto took_ms = std::chrono::duration<double, std::milli>(job.tried->took).count();
  metrics_.send_ms.observe(took_ms);
  child.set("rtt_ms", took_ms);
  job.tried->ended_at = clock_.now();
  if (!answer) {
    outcome.result.reason_code = reason::kInternalError;
    outcome.message = describe(answer.error());
    outcome.in_doubt = true;
  }
  if (outcome.result.status == ExecStatus::error) child.fail();
  child.end();
  if (outcome.duplicate) co_return co_await end_duplicate(job, std::move(outcome));
  co_return end_with(job, std::move(outcome), false);
}

Task<Ended> OrderHandler::end_duplicate(OrderJob& job, SendOutcome outcome) {
  // No try of ours can have reached the broker, and yet it has the key. Either a proxy has repeated a request
  // of ours, or the key belongs to another order. Only a look-up tells which; later tries, in doubt or not,
  // don't.
  if (!job.row.in_doubt) job.key_was_taken = true;
  if (adapter_.can_find()) {
    if (auto found = co_await look_up(job)) co_return *found;
  }
  if (!job.key_was_taken) {
    outcome.result.status = ExecStatus::ok;
    outcome.result.reason_code.clear();
    outcome.result.warnings.emplace_back(warning::kWorking);
    co_return end_with(job, std::move(outcome), false);
  }
  job.tried->outcome = reason::kInternalError;
  auto ended =
      fail(job, reason::kInternalError, "the broker had an order of this key before one was sent from here",
           Outcome{.kind = Outcome::Kind::transient, .in_doubt = true});
  ended.reach = Reach::reached;
  co_return ended;
}

Ended OrderHandler::end_with(OrderJob& job, SendOutcome outcome, bool doubt_ended) const {
  job.result = std::move(outcome.result);
  if (!job.result.broker.order_ref.empty()) job.tried->broker_ref = job.result.broker.order_ref;
  job.tried->note = std::move(outcome.unread);
  if (job.result.status == ExecStatus::ok) {
    job.tried->outcome = "ok";
    return Ended{{.kind = Outcome::Kind::done}, Reach::reached};
  }
  if (job.result.reason_code.empty()) job.result.reason_code = reason::kInternalError;
  const auto code = job.result.reason_code;
  job.tried->outcome = code;
  return fail(job, code, std::move(outcome.message),
              Outcome{.kind = is_transient(code) ? Outcome::Kind::transient : Outcome::Kind::permanent,
                      .in_doubt = outcome.in_doubt,
                      .doubt_ended = doubt_ended,
                      .retry_after = outcome.retry_after});
}

bool OrderHandler::is_too_old(const OrderJob& job) const {
  const auto most = options_.max_age.of(job.order->time_in_force);
  if (most.count() == 0) return false;
  // By the database's clock up to the claim, by ours from there on.
  const auto age = (job.claimed_at - job.created_at) + (clock_.steady() - job.claimed_steady);
  return age > most;
}

void OrderHandler::on_verdict(queue::Job& base) {
  auto& job = static_cast<OrderJob&>(base);
  job.payload.clear();
  job.result_digest.clear();
  if (!is_over(job.verdict.status)) return;
  complete_result(job);
  job.payload = to_json(job.result);
  job.result_digest = result_digest(job.result);
  job.http_status = http_status_of(job.result.reason_code);
}

void OrderHandler::complete_result(OrderJob& job) const {
  auto& result = job.result;
  result.completed_at = clock_.now();
  result.idempotency_key = job.key;
  result.trace_id = job.trace_id;
  if (result.broker.name.empty()) result.broker.name = adapter_.name();
  if (job.order) {
    result.order_id = job.order->order_id.value_or(job.key);
    result.instrument = job.order->instrument;
    result.side = to_string(job.order->side);
    result.requested_at = job.order->requested_at;
    if (job.order->trace_id) result.trace_id = job.order->trace_id;
    if (result.status == ExecStatus::ok && job.order->risk_constraints && !adapter_.enforces_risk()) {
      result.warnings.emplace_back(warning::kRiskNotEnforced);
    }
  }
  if (job.verdict.status == RowStatus::aborted && job.verdict.in_doubt) {
    auto& warnings = result.warnings;
    const bool is_there = std::find(warnings.begin(), warnings.end(), warning::kInDoubt) != warnings.end();
    if (!is_there) warnings.emplace_back(warning::kInDoubt);
  }
  const auto waited = job.claimed_at - job.created_at;
  result.latency_ms.queue = millis_between(job.created_at, job.created_at + waited);
  if (job.tried) result.latency_ms.broker_rtt = sending_ms(job);
  const auto since = std::chrono::duration_cast<SystemTime::duration>(clock_.steady() - job.claimed_steady);
  result.latency_ms.total = millis_between(job.created_at, job.claimed_at + since);
}

}  // namespace todoke::orders

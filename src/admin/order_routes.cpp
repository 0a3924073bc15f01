// Orders, and what the operator keeps out of the relay.
#include <utility>

#include <fmt/format.h>

#include "admin/lists_sql.hpp"
#include "admin/routes.hpp"
#include "api/answers.hpp"
#include "base/json_writer.hpp"
#include "base/text.hpp"
#include "base/timestamp.hpp"
#include "orders/admin/admin.hpp"
#include "orders/core/order.hpp"
#include "relay/blocks.hpp"

namespace todoke::admin {
namespace {

using api::Needed;

constexpr std::int64_t kReasonMax = 250;
constexpr std::int64_t kOrderIdMax = 9'007'199'254'740'991;

api::SchemaMember reason_member() {
  return {"reason", api::nullable(api::text_up_to(kReasonMax, "For the audit.")), Needed::optional};
}

api::Parameter order_id() {
  return api::in_path("id", api::integer_from(1, kOrderIdMax, "Of the order."));
}

api::Schema any_of(std::string_view name, std::vector<api::SchemaMember> members) {
  return api::named(name, api::object_of(std::move(members)));
}

Task<net::Response> list_orders_page(Desk& desk, const api::Call& call) {
  const auto in_doubt = call.text_if("in_doubt");
  pg::Params params(call.text_if("status"),
                    in_doubt ? std::optional(*in_doubt == "true") : std::optional<bool>(),
                    call.text_if("instrument"), call.text_if("adapter"));
  co_return co_await answer_page(desk, call, sql::kListOrders, std::move(params), 1);
}

std::string details_json(std::int64_t id, const orders::OrderDetails& order) {
  JsonWriter json;
  json.begin_object().member("id", id).key("fields").begin_object();
  for (const auto& [name, value] : order.fields) json.member(name, value);
  json.end_object().key("tries").begin_array();
  for (const auto& line : order.tries) json.value(line);
  json.end_array().key("audit").begin_array();
  for (const auto& line : order.audit) json.value(line);
  json.end_array().end_object();
  return std::move(json).text();
}

net::Response no_such_order() {
  return api::failure(api::status::kNotFound, "NOT_FOUND", "there is no such order");
}

// The order without its content, after `work`; 404 where there is none, 409 with the reason of a refusal.
template <class Work>
Task<net::Response> with_order(Desk& desk, const api::Call& call, const Work& work) {
  const auto id = call.integer_or("id", 0);
  const auto change = [&](pg::Connection& connection, Deadline deadline) -> Task<net::Response> {
    const auto found = co_await orders::find_order(connection, std::to_string(id), deadline);
    if (!found || *found != id) co_return no_such_order();
    const auto done = co_await work(connection, deadline);
    if (!done) co_return refused("REFUSED", done.error());
    const auto details = co_await orders::show_order(connection, id, false, call.caller.name, deadline);
    co_return api::answer(api::status::kOk, details_json(id, details));
  };
  co_return co_await answer_by(desk, call, change);
}

Task<Expected<void>> change_nothing() {
  co_return Expected<void>();
}

Task<net::Response> show_one_order(Desk& desk, const api::Call& call) {
  const auto work = [](pg::Connection&, Deadline) { return change_nothing(); };
  co_return co_await with_order(desk, call, work);
}

orders::Change change_of(const api::Call& call) {
  orders::Change change;
  change.id = call.integer_or("id", 0);
  change.actor = call.caller.name;
  change.reason = call.body_text("reason");
  change.force = body_flag(call, "force");
  return change;
}

using OrderWork = Task<Expected<void>> (*)(pg::Connection&, orders::Change, Deadline);

DeskHandler order_change(OrderWork work) {
  return [work](Desk& desk, const api::Call& call) -> Task<net::Response> {
    const auto change = [&](pg::Connection& connection, Deadline deadline) {
      return work(connection, change_of(call), deadline);
    };
    co_return co_await with_order(desk, call, change);
  };
}

Task<net::Response> settle(Desk& desk, const api::Call& call) {
  const auto result = orders::parse_exec_result(body_json(call, "result"));
  if (!result) co_return api::invalid({path_of("result", result.error().field), result.error().message});
  const auto change = [&](pg::Connection& connection, Deadline deadline) {
    return orders::settle_order(connection, change_of(call), *result, deadline);
  };
  co_return co_await with_order(desk, call, change);
}

Checked<orders::HaltChange> halt_of(const api::Call& call) {
  orders::HaltChange halt;
  halt.adapter = call.body_text("adapter").value_or("*");
  halt.instrument = call.body_text("instrument").value_or("*");
  if (halt.instrument != "*" && !orders::is_instrument(halt.instrument))
    return bad_field("instrument", "must be an instrument, or *");
  halt.refuse_intake = body_flag(call, "refuse_intake");
  halt.actor = call.caller.name;
  halt.reason = call.body_text("reason");
  return halt;
}

std::string halt_json(const orders::HaltChange& halt, bool is_halted, bool refuses) {
  JsonWriter json;
  json.begin_object().member("adapter", halt.adapter).member("instrument", halt.instrument);
  json.member("is_halted", is_halted).member("refuses_intake", refuses).end_object();
  return std::move(json).text();
}

Task<net::Response> halt(Desk& desk, const api::Call& call) {
  const auto asked = halt_of(call);
  if (!asked) co_return api::invalid(asked.error());
  const auto work = [&](pg::Connection& connection, Deadline deadline) -> Task<net::Response> {
    const bool refuses = co_await orders::halt_orders(connection, *asked, deadline);
    co_return api::answer(api::status::kOk, halt_json(*asked, true, refuses));
  };
  co_return co_await answer_by(desk, call, work);
}

Task<net::Response> resume(Desk& desk, const api::Call& call) {
  const auto asked = halt_of(call);
  if (!asked) co_return api::invalid(asked.error());
  const auto work = [&](pg::Connection& connection, Deadline deadline) -> Task<net::Response> {
    const bool was_halted = co_await orders::resume_orders(connection, *asked, deadline);
    if (!was_halted) co_return api::failure(api::status::kNotFound, "NOT_FOUND", "there is no such halt");
    co_return api::answer(api::status::kOk, halt_json(*asked, false, false));
  };
  co_return co_await answer_by(desk, call, work);
}

api::Schema halt_schema(std::string_view name, bool begins) {
  std::vector<api::SchemaMember> members{
      {"adapter", api::choice_of({"*", "paper", "noop", "http", "fix"}, "All without it."), Needed::optional},
      {"instrument", api::text_up_to(20, "All without it."), Needed::optional},
      reason_member()};
  if (begins)
    members.push_back({"refuse_intake", api::boolean("New orders are refused, too."), Needed::optional});
  return any_of(name, std::move(members));
}

}  // namespace

Routes order_routes(Desk& desk) {
  const std::string_view tag = "orders";
  const auto force =
      api::SchemaMember{"force", api::boolean("Also where a worker holds it."), Needed::optional};
  return {
      read_route(desk, {"/orders", "listOrders", tag, "Orders, the newest first, without their content."},
                 with_page({api::in_query("status", api::choice_of({"pending", "sending", "failed",
                                                                    "succeeded", "aborted"},
                                                                   "Only those.")),
                            api::in_query("in_doubt", api::choice_of({"true"}, "Only those in doubt.")),
                            api::in_query("instrument", api::text_up_to(20, "Only those.")),
                            api::in_query("adapter", api::text_up_to(20, "Only those that it has tried."))}),
                 list_orders_page),
      read_route(desk, {"/orders/{id}", "getOrder", tag, "One, with its tries and what was done by hand."},
                 {order_id()}, show_one_order),
      change_route(desk, "POST",
                   {"/orders/{id}/requeue", "requeueOrder", tag, "Queues an order that is aborted or waits."},
                   kOperators, {order_id()}, any_of("OrderRequeue", {reason_member()}),
                   order_change(orders::requeue_order)),
      change_route(desk, "POST",
                   {"/orders/{id}/release", "releaseOrder", tag, "Takes it from its worker, in doubt."},
                   kOperators, {order_id()}, any_of("OrderRelease", {reason_member(), force}),
                   order_change(orders::release_order)),
      change_route(desk, "POST", {"/orders/{id}/abort", "abortOrder", tag, "Ends it without an effect."},
                   kOperators, {order_id()}, any_of("OrderAbort", {reason_member(), force}),
                   order_change(orders::abort_order)),
      change_route(
          desk, "POST",
          {"/orders/{id}/settle", "settleOrder", tag, "Records the outcome that the operator knows."},
          kOperators, {order_id()},
          any_of("OrderSettle", {{"result", api::any_object("An ExecResult.")}, reason_member(), force}),
          settle),
      read_route(desk, {"/order-halts", "listHalts", tag, "What is halted."}, with_page({}),
                 [](Desk& at, const api::Call& call) -> Task<net::Response> {
                   return answer_page(at, call, sql::kListHalts, {}, 2);
                 }),
      change_route(desk, "POST", {"/order-halts/halt", "haltOrders", tag, "Stops sending."}, kOperators, {},
                   halt_schema("Halt", true), halt),
      change_route(desk, "POST", {"/order-halts/resume", "resumeOrders", tag, "Lifts a halt."}, kOperators,
                   {}, halt_schema("Resume", false), resume)};
}

// ---------------------------------------------------------------------------------------------- blocks

namespace {

api::Schema kind_schema() {
  return api::choice_of({"pubkey", "event", "ip", "topic"}, "What is kept out.");
}

Task<net::Response> list_blocks(Desk& desk, const api::Call& call) {
  co_return co_await answer_page(desk, call, sql::kListBlocks, {call.text_if("kind")}, 2);
}

std::string block_json(const relay::BlockOrder& order, const relay::BlockDone& done) {
  JsonWriter json;
  json.begin_object().member("kind", to_string(order.kind)).member("value", order.value);
  json.member("was_there", done.was_there).member("hidden", done.hidden).member("erased", done.erased);
  json.end_object();
  return std::move(json).text();
}

Checked<relay::BlockOrder> block_of(const api::Call& call) {
  relay::BlockOrder order;
  order.kind = relay::block_kind(call.body_text("kind").value_or("")).value();
  auto value = relay::block_value(order.kind, call.body_text("value").value_or(""));
  if (!value) return bad_field("value", value.error().message);
  order.value = std::move(*value);
  order.reason = call.body_text("reason");
  order.erases = body_flag(call, "erase");
  order.actor = call.caller.name;
  if (order.erases && order.kind == relay::BlockKind::ip) return bad_field("erase", "is not for addresses");
  if (const auto until = call.body_text("until")) {
    order.until = parse_timestamp(*until);
    if (!order.until) return bad_field("until", "must be a time that there is");
  }
  return order;
}

Task<net::Response> add_block(Desk& desk, const api::Call& call) {
  const auto order = block_of(call);
  if (!order) co_return api::invalid(order.error());
  const auto work = [&](pg::Connection& connection, Deadline deadline) -> Task<net::Response> {
    const auto done = co_await relay::add_block(connection, *order, deadline);
    if (done.is_full)
      co_return api::failure(api::status::kConflict, "TOO_MANY_BLOCKS", "there are as many as may be");
    co_return api::answer(api::status::kOk, block_json(*order, done));
  };
  co_return co_await answer_by(desk, call, work);
}

Task<net::Response> remove_block(Desk& desk, const api::Call& call) {
  const auto order = block_of(call);
  if (!order) co_return api::invalid(order.error());
  const auto work = [&](pg::Connection& connection, Deadline deadline) -> Task<net::Response> {
    const bool was_there =
        co_await relay::remove_block(connection, order->kind, order->value, call.caller.name, deadline);
    if (!was_there) co_return api::failure(api::status::kNotFound, "NOT_FOUND", "it was not blocked");
    co_return api::answer(api::status::kOk, block_json(*order, {}));
  };
  co_return co_await answer_by(desk, call, work);
}

}  // namespace

Routes block_routes(Desk& desk) {
  const std::string_view tag = "blocks";
  const api::SchemaMember kind{"kind", kind_schema()};
  const api::SchemaMember value{"value",
                                api::text_up_to(250,
                                                "A key or an event id in hex, an address or block of "
                                                "addresses, a topic id.")};
  const auto block = any_of(
      "Block", {kind,
                value,
                reason_member(),
                {"until", api::nullable(api::formatted(api::kTimestamp, "Until then.")), Needed::optional},
                {"erase", api::boolean("What is stored, too."), Needed::optional}});
  return {read_route(desk, {"/blocks", "listBlocks", tag, "What the operator keeps out."},
                     with_page({api::in_query("kind", kind_schema())}), list_blocks),
          change_route(desk, "POST", {"/blocks", "addBlock", tag, "Keeps it out, at once."}, kModerators, {},
                       block, add_block),
          change_route(desk, "POST", {"/blocks/remove", "removeBlock", tag, "Lets it in again."}, kModerators,
                       {}, any_of("BlockName", {kind, value}), remove_block)};
}

}  // namespace todoke::admin

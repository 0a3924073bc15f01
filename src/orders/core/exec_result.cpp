#include "orders/core/exec_result.hpp"

#include <algorithm>
#include <array>

#include "base/json_writer.hpp"
#include "base/text.hpp"
#include "base/timestamp.hpp"
#include "orders/core/canonical.hpp"
#include "orders/core/json_value.hpp"
#include "orders/core/text.hpp"

namespace todoke::orders {
namespace {

using Kind = JsonValue::Kind;

// Of any text in a result; brokers' references are the longest.
constexpr std::size_t kTextCharactersMax = 1'024;

void write_or_null(JsonWriter& json, std::string_view name, const std::optional<std::string>& text) {
  json.key(name);
  if (text) {
    json.value(*text);
  } else {
    json.null();
  }
}

void write_or_null(JsonWriter& json, std::string_view name, const std::optional<Decimal>& number) {
  json.key(name).raw(number ? number->text() : "null");
}

void write_fills(JsonWriter& json, const std::vector<Fill>& fills) {
  json.key("fills").begin_array();
  for (const auto& fill : fills) {
    json.begin_object();
    json.key("px").raw(fill.px.text()).key("qty").raw(fill.qty.text());
    json.member("ts", format_timestamp(fill.ts));
    json.end_object();
  }
  json.end_array();
}

std::string_view to_string(ExecStatus status) {
  return status == ExecStatus::ok ? "ok" : "error";
}

std::optional<SystemTime> time(JsonFields& fields, std::string_view name) {
  const auto text = fields.text(name, kTextCharactersMax);
  if (!text) return std::nullopt;
  const auto parsed = parse_timestamp(*text);
  if (!parsed) fields.offend(name, "must be a date and time with its offset");
  return parsed;
}

// A sum of products: more digits than any amount that comes from outside.
Decimal cost(JsonFields& fields) {
  constexpr std::size_t kWholeMax = 2 * Decimal::kWholeDigitsMax + 20;
  constexpr std::size_t kFractionMax = 2 * Decimal::kFractionDigitsMax;
  const auto* value = fields.of_kind("cost", Kind::number);
  if (value == nullptr) return {};
  auto parsed = Decimal::parse(value->text, kWholeMax, kFractionMax);
  if (parsed) return std::move(*parsed);
  fields.offend("cost", parsed.error().message);
  return {};
}

std::string text_or_empty(JsonFields& fields, std::string_view name) {
  return fields.text(name, kTextCharactersMax).value_or("");
}

std::int64_t whole(JsonFields& fields, std::string_view name) {
  const auto* value = fields.of_kind(name, Kind::number);
  if (value == nullptr) return 0;
  const auto number = parse_number<std::int64_t>(value->text);
  if (!number) fields.offend(name, "must be a whole number");
  return number.value_or(0);
}

void read_status(JsonFields& fields, ExecResult& result) {
  fields.require("status");
  const auto status = text_or_empty(fields, "status");
  if (status != "ok" && status != "error") fields.offend("status", "must be ok or error");
  result.status = status == "ok" ? ExecStatus::ok : ExecStatus::error;
}

void read_fills(JsonFields& fields, ExecResult& result) {
  const auto* list = fields.of_kind("fills", Kind::array);
  if (list == nullptr) return;
  constexpr std::array<std::string_view, 3> kMembers{"px", "qty", "ts"};
  for (std::size_t i = 0; i < list->values.size(); ++i) {
    const auto path = path_of("fills", i);
    if (!list->values[i].is(Kind::object))
      return fields.offend(BadField{path, std::string(must_be(Kind::object))});
    JsonFields inner(list->values[i], path);
    inner.refuse_unknown(kMembers);
    for (const auto name : kMembers) inner.require(name);
    result.fills.push_back({inner.number("px").value_or(Decimal()), inner.number("qty").value_or(Decimal()),
                            time(inner, "ts").value_or(SystemTime())});
    if (inner.offence()) return fields.offend(std::move(*inner.offence()));
  }
}

void read_broker(JsonFields& fields, ExecResult& result) {
  const auto* object = fields.of_kind("broker", Kind::object);
  if (object == nullptr) return;
  constexpr std::array<std::string_view, 2> kMembers{"name", "order_ref"};
  JsonFields inner(*object, "broker");
  inner.refuse_unknown(kMembers);
  result.broker.name = text_or_empty(inner, "name");
  result.broker.order_ref = text_or_empty(inner, "order_ref");
  if (inner.offence()) fields.offend(std::move(*inner.offence()));
}

void read_latency(JsonFields& fields, ExecResult& result) {
  const auto* object = fields.of_kind("latency_ms", Kind::object);
  if (object == nullptr) return;
  constexpr std::array<std::string_view, 3> kMembers{"queue", "broker_rtt", "total"};
  JsonFields inner(*object, "latency_ms");
  inner.refuse_unknown(kMembers);
  result.latency_ms = {whole(inner, "queue"), whole(inner, "broker_rtt"), whole(inner, "total")};
  if (inner.offence()) fields.offend(std::move(*inner.offence()));
}

void read_warnings(JsonFields& fields, ExecResult& result) {
  const auto* list = fields.of_kind("warnings", Kind::array);
  if (list == nullptr) return;
  for (std::size_t i = 0; i < list->values.size(); ++i) {
    const auto& value = list->values[i];
    if (!value.is(Kind::string)) {
      return fields.offend(BadField{path_of("warnings", i), std::string(must_be(Kind::string))});
    }
    result.warnings.push_back(to_nfc(value.text));
  }
}

}  // namespace

std::string to_json(const ExecResult& result) {
  JsonWriter json;
  json.begin_object();
  json.member("status", to_string(result.status)).member("order_id", result.order_id);
  json.member("instrument", result.instrument).member("side", result.side);
  write_or_null(json, "requested_at", result.requested_at);
  json.member("completed_at", format_timestamp(result.completed_at));
  write_or_null(json, "trace_id", result.trace_id);
  json.member("idempotency_key", result.idempotency_key);
  write_fills(json, result.fills);
  write_or_null(json, "avg_price", result.avg_price);
  json.key("executed_qty").raw(result.executed_qty.text()).key("cost").raw(result.cost.text());
  write_or_null(json, "slippage", result.slippage);
  json.key("broker").begin_object();
  json.member("name", result.broker.name).member("order_ref", result.broker.order_ref).end_object();
  json.key("latency_ms").begin_object().member("queue", result.latency_ms.queue);
  json.member("broker_rtt", result.latency_ms.broker_rtt)
      .member("total", result.latency_ms.total)
      .end_object();
  write_or_null(json, "reason_code",
                result.reason_code.empty() ? std::nullopt : std::optional(result.reason_code));
  json.key("warnings").begin_array();
  for (const auto& warning : result.warnings) json.value(warning);
  json.end_array().end_object();
  return std::move(json).text();
}

Checked<ExecResult> parse_exec_result(std::string_view json) {
  const auto document = read_json(json);
  if (!document) return tl::unexpected<BadField>(document.error());
  if (!document->is(Kind::object)) return bad_field(kWholeDocument, "must be a JSON object");
  constexpr std::array<std::string_view, 17> kMembers{
      "status",   "order_id",        "instrument", "side",        "requested_at", "completed_at",
      "trace_id", "idempotency_key", "fills",      "avg_price",   "executed_qty", "cost",
      "slippage", "broker",          "latency_ms", "reason_code", "warnings"};
  JsonFields fields(*document, "");
  fields.refuse_unknown(kMembers);
  ExecResult result;
  read_status(fields, result);
  result.order_id = text_or_empty(fields, "order_id");
  result.instrument = text_or_empty(fields, "instrument");
  result.side = text_or_empty(fields, "side");
  result.requested_at = fields.text("requested_at", kTextCharactersMax);
  result.completed_at = time(fields, "completed_at").value_or(SystemTime());
  result.trace_id = fields.text("trace_id", kTextCharactersMax);
  result.idempotency_key = text_or_empty(fields, "idempotency_key");
  read_fills(fields, result);
  result.avg_price = fields.number("avg_price");
  result.executed_qty = fields.number("executed_qty").value_or(Decimal());
  result.cost = cost(fields);
  result.slippage = fields.number("slippage");
  read_broker(fields, result);
  read_latency(fields, result);
  result.reason_code = text_or_empty(fields, "reason_code");
  read_warnings(fields, result);
  if (fields.offence()) return tl::unexpected<BadField>(std::move(*fields.offence()));
  return result;
}

std::string canonical_json(const ExecResult& result) {
  JsonWriter json;
  json.begin_object();
  if (result.avg_price) write_or_null(json, "avg_price", result.avg_price);
  json.key("executed_qty").raw(result.executed_qty.text());
  write_fills(json, result.fills);
  json.member("instrument", result.instrument).member("order_id", result.order_id);
  if (!result.reason_code.empty()) json.member("reason_code", result.reason_code);
  json.member("side", result.side).member("status", to_string(result.status));
  json.end_object();
  return std::move(json).text();
}

std::string result_digest(const ExecResult& result) {
  return sha256_digest(canonical_json(result));
}

void sum_fills(ExecResult& result, const Order& order) {
  result.executed_qty = {};
  result.cost = {};
  result.avg_price.reset();
  result.slippage.reset();
  for (const auto& fill : result.fills) {
    result.executed_qty += fill.qty;
    result.cost += fill.px * fill.qty;
  }
  result.cost = result.cost.rounded();
  if (result.executed_qty.is_zero()) {
    if (order.time_in_force != TimeInForce::gtc) result.warnings.emplace_back(warning::kUnfilled);
    return;
  }
  result.avg_price = result.cost.divided_by(result.executed_qty);
  if (!order.price) return;
  result.slippage =
      order.side == Side::buy ? *result.avg_price - *order.price : *order.price - *result.avg_price;
}

int http_status_of(std::string_view reason_code) {
  struct Mapped {
    std::string_view code;
    int status;
  };
  static constexpr std::array kMapped{
      Mapped{"", 200},
      Mapped{reason::kBrokerTimeout, 504},
      Mapped{reason::kBrokerDown, 503},
      Mapped{reason::kBrokerRejected, 409},
      Mapped{reason::kIdempotencyConflict, 409},
      Mapped{reason::kAbortedByOperator, 409},
      Mapped{reason::kOrderExpired, 410},
      Mapped{reason::kValidationError, 422},
      Mapped{reason::kLeaseExpired, 504},
  };
  const auto* const found =
      std::find_if(kMapped.begin(), kMapped.end(), [&](const Mapped& m) { return m.code == reason_code; });
  return found == kMapped.end() ? 500 : found->status;
}

bool is_known_reason(std::string_view reason_code) {
  static constexpr std::array kKnown{reason::kBrokerTimeout,  reason::kBrokerDown,
                                     reason::kBrokerRejected, reason::kValidationError,
                                     reason::kInternalError,  reason::kOrderExpired};
  return std::find(kKnown.begin(), kKnown.end(), reason_code) != kKnown.end();
}

bool is_unreachable(std::string_view reason_code) {
  return reason_code == reason::kBrokerTimeout || reason_code == reason::kBrokerDown;
}

bool is_transient(std::string_view reason_code) {
  return is_unreachable(reason_code) || reason_code == reason::kInternalError;
}

}  // namespace todoke::orders

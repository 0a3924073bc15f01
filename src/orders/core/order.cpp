#include "orders/core/order.hpp"

#include <algorithm>
#include <array>

#include "base/timestamp.hpp"
#include "base/utf8.hpp"
#include "orders/core/json_value.hpp"
#include "orders/core/text.hpp"

namespace todoke::orders {
namespace {

using Kind = JsonValue::Kind;

constexpr std::size_t kInstrumentMin = 3;
constexpr std::size_t kInstrumentMax = 20;

constexpr std::array<std::string_view, 11> kMembers{
    "instrument",      "side",     "qty",          "price", "time_in_force",
    "idempotency_key", "order_id", "requested_at", "tags",  "risk_constraints",
    "trace_id",
};
constexpr std::array<std::string_view, 3> kRiskMembers{"max_dd", "max_consecutive_loss", "max_spread"};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

void read_instrument(JsonFields& fields, Order& order) {
  fields.require("instrument");
  auto text = fields.text("instrument", kIdCharactersMax);
  if (!text) return;
  if (!is_instrument(*text)) {
    fields.offend("instrument", kInstrumentRule);
  }
  order.instrument = std::move(*text);
}

void read_side(JsonFields& fields, Order& order) {
  fields.require("side");
  const auto text = fields.text("side", kIdCharactersMax);
  if (!text) return;
  if (*text != "BUY" && *text != "SELL") fields.offend("side", "must be BUY or SELL");
  order.side = *text == "SELL" ? Side::sell : Side::buy;
}

void read_amounts(JsonFields& fields, Order& order) {
  fields.require("qty");
  if (auto qty = fields.number("qty")) {
    if (!qty->is_positive()) fields.offend("qty", "must be more than 0");
    order.qty = std::move(*qty);
  }
  order.price = fields.number("price");
  if (order.price && !order.price->is_positive()) fields.offend("price", "must be null or more than 0");
}

void read_time_in_force(JsonFields& fields, Order& order) {
  const auto text = fields.text("time_in_force", kIdCharactersMax);
  if (!text || *text == "IOC") return;
  if (*text != "FOK" && *text != "GTC") fields.offend("time_in_force", "must be IOC, FOK or GTC");
  order.time_in_force = *text == "FOK" ? TimeInForce::fok : TimeInForce::gtc;
}

void read_key(JsonFields& fields, Order& order) {
  fields.require("idempotency_key");
  const auto* value = fields.of_kind("idempotency_key", Kind::string);
  if (value == nullptr) return;
  if (!is_idempotency_key(value->text)) {
    fields.offend("idempotency_key", "must be 8 to 64 printable ASCII characters without space");
  }
  order.idempotency_key = value->text;
}

void read_tags(JsonFields& fields, Order& order) {
  const auto* tags = fields.of_kind("tags", Kind::array);
  if (tags == nullptr) return;
  if (tags->values.size() > kTagsMax) return fields.offend("tags", "has more than 8 entries");
  auto& read = order.tags.emplace();
  for (std::size_t i = 0; i < tags->values.size(); ++i) {
    const auto& tag = tags->values[i];
    const auto offend = [&](std::string message) {
      fields.offend(BadField{path_of("tags", i), std::move(message)});
    };
    if (!tag.is(Kind::string)) return offend("must be a string");
    auto normal = to_nfc(tag.text);
    if (count_characters(normal) > kTagCharactersMax) return offend("has more than 32 characters");
    read.push_back(std::move(normal));
  }
}

void read_risk(JsonFields& fields, Order& order) {
  const auto* object = fields.of_kind("risk_constraints", Kind::object);
  if (object == nullptr) return;
  JsonFields inner(*object, "risk_constraints");
  inner.refuse_unknown(kRiskMembers);
  const auto limit = [&inner](std::string_view name) {
    auto number = inner.number(name);
    if (number && number->is_negative()) inner.offend(name, "must be 0 or more");
    return number;
  };
  auto& risk = order.risk_constraints.emplace();
  risk.max_dd = limit("max_dd");
  risk.max_consecutive_loss = limit("max_consecutive_loss");
  risk.max_spread = limit("max_spread");
  if (inner.offence()) fields.offend(std::move(*inner.offence()));
}

void read_requested_at(JsonFields& fields, Order& order) {
  order.requested_at = fields.text("requested_at", kIdCharactersMax);
  if (order.requested_at && !parse_timestamp(*order.requested_at)) {
    fields.offend("requested_at", "must be a date and time with its offset, such as 2025-08-24T12:34:56Z");
  }
}

}  // namespace

std::string_view to_string(Side side) {
  return side == Side::buy ? "BUY" : "SELL";
}

std::string_view to_string(TimeInForce time_in_force) {
  switch (time_in_force) {
    case TimeInForce::ioc:
      return "IOC";
    case TimeInForce::fok:
      return "FOK";
    case TimeInForce::gtc:
      return "GTC";
  }
  return "IOC";
}

bool is_instrument(std::string_view text) {
  return text.size() >= kInstrumentMin && text.size() <= kInstrumentMax &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'A' && c <= 'Z') || is_digit(c) || c == '.' || c == '_' || c == '-';
         });
}

bool is_idempotency_key(std::string_view key) {
  return key.size() >= kKeyCharactersMin && key.size() <= kKeyCharactersMax &&
         std::all_of(key.begin(), key.end(), [](char c) { return c >= 0x21 && c <= 0x7E; });
}

Checked<Order> parse_order(std::string_view json) {
  const auto document = read_json(json);
  if (!document) return tl::unexpected<BadField>(document.error());
  if (!document->is(Kind::object)) return bad_field(kWholeDocument, "must be a JSON object");
  JsonFields fields(*document, "");
  fields.refuse_unknown(kMembers);
  Order order;
  read_instrument(fields, order);
  read_side(fields, order);
  read_amounts(fields, order);
  read_time_in_force(fields, order);
  read_key(fields, order);
  order.order_id = fields.text("order_id", kIdCharactersMax);
  read_requested_at(fields, order);
  read_tags(fields, order);
  read_risk(fields, order);
  order.trace_id = fields.text("trace_id", kIdCharactersMax);
  if (fields.offence()) return tl::unexpected<BadField>(std::move(*fields.offence()));
  return order;
}

}  // namespace todoke::orders

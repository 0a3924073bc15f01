#include "orders/core/canonical.hpp"

#include "base/bytes.hpp"
#include "base/json_writer.hpp"
#include "base/sha256.hpp"

namespace todoke::orders {
namespace {

constexpr std::size_t kKeyHashDigits = 32;

enum class Scope { digest, whole };

void write_if(JsonWriter& json, std::string_view name, const std::optional<std::string>& text) {
  if (text) json.member(name, *text);
}

void write_if(JsonWriter& json, std::string_view name, const std::optional<Decimal>& number) {
  if (number) json.key(name).raw(number->text());
}

// Members stand in the order of their names.
std::string write(const Order& order, Scope scope) {
  JsonWriter json;
  json.begin_object();
  if (scope == Scope::whole) json.member("idempotency_key", order.idempotency_key);
  json.member("instrument", order.instrument);
  write_if(json, "order_id", order.order_id);
  json.key("price").raw(order.price ? order.price->text() : "null");
  json.key("qty").raw(order.qty.text());
  write_if(json, "requested_at", order.requested_at);
  if (order.risk_constraints) {
    json.key("risk_constraints").begin_object();
    write_if(json, "max_consecutive_loss", order.risk_constraints->max_consecutive_loss);
    write_if(json, "max_dd", order.risk_constraints->max_dd);
    write_if(json, "max_spread", order.risk_constraints->max_spread);
    json.end_object();
  }
  json.member("side", to_string(order.side));
  if (order.tags) {
    json.key("tags").begin_array();
    for (const auto& tag : *order.tags) json.value(tag);
    json.end_array();
  }
  json.member("time_in_force", to_string(order.time_in_force));
  if (scope == Scope::whole) write_if(json, "trace_id", order.trace_id);
  json.end_object();
  return std::move(json).text();
}

}  // namespace

std::string canonical_json(const Order& order) {
  return write(order, Scope::digest);
}

std::string stored_json(const Order& order) {
  return write(order, Scope::whole);
}

std::string sha256_digest(std::string_view text) {
  return "sha256:" + to_hex(sha256({text}));
}

std::string request_digest(const Order& order) {
  return sha256_digest(canonical_json(order));
}

std::string key_hash(std::string_view idempotency_key) {
  return to_hex(sha256({idempotency_key})).substr(0, kKeyHashDigits);
}

}  // namespace todoke::orders

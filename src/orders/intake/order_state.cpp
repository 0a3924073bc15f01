#include "orders/intake/order_state.hpp"

#include "base/json_writer.hpp"
#include "orders/core/timestamp.hpp"
#include "orders/intake/intake_sql.hpp"

namespace todoke::orders {

std::string to_json(const OrderState& state) {
  JsonWriter json;
  json.begin_object();
  json.member("idempotency_key", state.idempotency_key).member("status", state.status);
  json.member("attempts", state.attempts).key("next_run_at");
  if (state.next_run_at) {
    json.value(format_timestamp(*state.next_run_at));
  } else {
    json.null();
  }
  json.key("last_error_code");
  if (state.last_error_code) {
    json.value(*state.last_error_code);
  } else {
    json.null();
  }
  json.member("in_doubt", state.in_doubt);
  json.key("http_status").raw(state.http_status ? std::to_string(*state.http_status) : "null");
  json.key("result").raw(state.result ? *state.result : "null");
  json.end_object();
  return std::move(json).text();
}

Task<std::vector<OrderState>> read_states(pg::Connection& connection, std::span<const std::string> keys,
                                          Deadline deadline) {
  pg::Params params(keys);
  const auto rows = co_await connection.query(sql::kReadStates, std::move(params), deadline);
  std::vector<OrderState> states;
  states.reserve(rows.size());
  for (const auto& row : rows) {
    auto& state = states.emplace_back();
    state.idempotency_key = row.get<std::string>("key");
    state.request_digest = row.get<std::string>("request_digest");
    state.status = row.get<std::string>("status");
    state.attempts = row.get<std::int32_t>("attempts");
    state.next_run_at = row.get<std::optional<SystemTime>>("next_run_at");
    state.last_error_code = row.get<std::optional<std::string>>("last_error_code");
    state.in_doubt = row.get<bool>("in_doubt");
    state.http_status = row.get<std::optional<std::int32_t>>("http_status");
    if (auto result = row.get<std::optional<pg::Json>>("result")) state.result = std::move(result->text);
  }
  co_return states;
}

}  // namespace todoke::orders

#include "orders_api/rig.hpp"

#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "orders/core/json_value.hpp"

namespace todoke::test {

std::string order_body(const std::string& key, const std::map<std::string, std::string>& changes) {
  std::map<std::string, std::string> members{{"instrument", R"("BTC-USD")"},
                                             {"side", R"("BUY")"},
                                             {"qty", "0.5"},
                                             {"idempotency_key", fmt::format("\"{}\"", key)}};
  for (const auto& [name, value] : changes) members[name] = value;
  std::string text;
  for (const auto& [name, value] : members) {
    if (!value.empty()) text += fmt::format("{}\"{}\":{}", text.empty() ? "" : ",", name, value);
  }
  return "{" + text + "}";
}

std::string member(const std::string& json, std::string_view path) {
  const auto document = read_json(json);
  if (!document) throw std::runtime_error("no JSON: " + json);
  const auto* value = &*document;
  while (value != nullptr && !path.empty()) {
    const auto dot = path.find('.');
    value = value->member(path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  using Kind = JsonValue::Kind;
  if (value == nullptr) return "null";
  if (value->is(Kind::boolean)) return value->flag ? "true" : "false";
  return value->text;
}

std::string code(const RawResponse& response) {
  return fmt::format("{} {}", response.status, member(response.body, "code"));
}

OrdersRig::OrdersRig(Flags flags, DatabasePtr database)
    : NodeRig({.roles = {"orders"},
               .flags = std::move(flags),
               .database = std::move(database),
               .behind_proxy = true}) {}

RawResponse OrdersRig::ask(const std::string& request) const {
  return net::test::RawClient(port()).ask(request);
}

RawResponse OrdersRig::post(const std::string& key, const std::string& body, const std::string& more) const {
  return ask(
      net::test::post("/do/order", body,
                      fmt::format("Content-Type: application/json\r\nIdempotency-Key: {}\r\n{}", key, more)));
}

RawResponse OrdersRig::get(const std::string& target, const std::string& more) const {
  return ask(net::test::get(target, more));
}

}  // namespace todoke::test

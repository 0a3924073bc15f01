#include "orders_api/rig.hpp"

#include <utility>

#include <fmt/format.h>

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

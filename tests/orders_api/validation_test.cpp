// Every rule of an order, at the wire: the field is named and nothing is written.
#include <gtest/gtest.h>

#include "orders_api/rig.hpp"

namespace todoke::test {
namespace {

struct Case {
  const char* field;  // that is named
  std::string body;
};

Case with(const char* field, const char* name, const char* value) {
  return {field, order_body("key-0001", {{name, value}})};
}

std::vector<Case> cases() {
  const std::string long_text = "\"" + std::string(129, 'x') + "\"";
  return {
      {"body", ""},
      {"body", "[]"},
      {"body", "{"},
      {"body", "{\"qty\":1}}"},
      {"body", "\"\xFF\""},
      with("instrument", "instrument", ""),
      with("instrument", "instrument", "\"btc\""),
      with("instrument", "instrument", "\"AB\""),
      with("instrument", "instrument", "5"),
      with("side", "side", ""),
      with("side", "side", "\"HOLD\""),
      with("qty", "qty", ""),
      with("qty", "qty", "null"),
      with("qty", "qty", "0"),
      with("qty", "qty", "-0.1"),
      with("qty", "qty", "\"1\""),
      with("qty", "qty", "1e20"),
      with("qty", "qty", "0.1234567890123456789"),
      with("price", "price", "0"),
      with("price", "price", "\"1\""),
      with("price", "price", "true"),
      with("time_in_force", "time_in_force", "\"DAY\""),
      with("idempotency_key", "idempotency_key", ""),
      with("idempotency_key", "idempotency_key", "\"short\""),
      with("idempotency_key", "idempotency_key", "\"with a space\""),
      with("order_id", "order_id", "1"),
      with("order_id", "order_id", long_text.c_str()),
      with("order_id", "order_id", R"("\ud800")"),
      with("trace_id", "trace_id", R"("\u0000")"),
      with("requested_at", "requested_at", "\"2025-02-30T00:00:00Z\""),
      with("tags", "tags", "{}"),
      with("tags", "tags", R"(["1","2","3","4","5","6","7","8","9"])"),
      with("tags[3]", "tags", R"(["1","2","3",4])"),
      with("tags[0]", "tags", R"(["123456789012345678901234567890123"])"),
      with("risk_constraints", "risk_constraints", "1"),
      with("risk_constraints.max_dd", "risk_constraints", R"({"max_dd":"1"})"),
      with("risk_constraints.max_spread", "risk_constraints", R"({"max_spread":-1})"),
      with("risk_constraints.max_consecutive_loss", "risk_constraints", R"({"max_consecutive_loss":[]})"),
      with("risk_constraints.stop", "risk_constraints", R"({"stop":1})"),
      with("risk_constraints.max_dd", "risk_constraints", R"({"max_dd":1,"max_dd":1})"),
      with("leverage", "leverage", "1"),
      {"qty", R"({"qty":1,"qty":1})"},
  };
}

TEST(OrderValidation, NamesTheFieldOfEveryRule) {
  const OrdersRig rig;
  for (const auto& [field, body] : cases()) {
    const auto response = rig.post("key-0001", body);
    ASSERT_EQ(response.status, 422) << body;
    EXPECT_EQ(member(response.body, "code"), "VALIDATION_ERROR") << body;
    EXPECT_EQ(member(response.body, "details.field"), field) << body << " " << response.body;
    EXPECT_TRUE(member(response.body, "message").starts_with(field)) << response.body;
  }
  EXPECT_EQ(rig.value("SELECT count(*) FROM orders.outbox_orders"), "0");
  EXPECT_EQ(rig.value("SELECT count(*) FROM orders.idempo_ledger"), "0");
}

TEST(OrderValidation, TakesWhatIsJustAllowed) {
  const OrdersRig rig;
  const std::vector<std::map<std::string, std::string>> orders{
      {{"instrument", "\"A.1\""}},
      {{"qty", "99999999999999999999.999999999999999999"}},
      {{"tags", R"(["12345678901234567890123456789012","","3","4","5","6","7","8"])"}},
      {{"risk_constraints", "{}"}},
      {{"requested_at", "\"2025-08-24T12:34:56.789+09:00\""}},
      {{"order_id", R"("\ud83d\ude00")"}},
  };
  int number = 0;
  for (const auto& changes : orders) {
    const auto key = "key-000" + std::to_string(number++);
    const auto response = rig.post(key, order_body(key, changes));
    EXPECT_EQ(response.status, 201) << response.body;
  }
}

}  // namespace
}  // namespace todoke::test

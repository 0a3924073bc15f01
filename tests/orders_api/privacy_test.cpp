// Keys and content stay out of logs and traces.
#include <mutex>

#include <gtest/gtest.h>

#include "base/log.hpp"
#include "orders/core/canonical.hpp"
#include "orders_api/rig.hpp"

namespace todoke::test {
namespace {

// No time, number or port of a log line can look like it.
const std::string kQty = "123.456789012345";

TEST(OrderPrivacy, LogsAndSpansShowAKeyAsItsHashOnly) {
  std::mutex mutex;
  std::string logged;
  log::configure(log::Level::debug, log::Format::json);
  {
    const log::Capture capture([&](std::string_view line) {
      const std::lock_guard lock(mutex);
      logged += line;
    });
    OrdersRig rig(Flags{{"orders.accept_timeout", "2s"}});
    EXPECT_EQ(rig.post("secret-key-1", order_body("secret-key-1", {{"instrument", "\"SECRET-X\""}})).status,
              201);
    EXPECT_EQ(rig.post("secret-key-1", order_body("secret-key-1", {{"qty", kQty}})).status, 409);
    EXPECT_EQ(rig.post("secret-key-1", order_body("secret-key-1", {{"qty", "\"" + kQty + "\""}})).status,
              422);
    EXPECT_EQ(rig.get("/do/order/secret-key-1").status, 200);
    EXPECT_EQ(rig.get("/do/order/secret-key-2").status, 404);
    EXPECT_EQ(rig.get("/do/order/secret-key-1?wait=x").status, 422);
    EXPECT_EQ(rig.ask("DELETE /do/order/secret-key-1 HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 405);
    rig.proxy().set_reachable(false);
    EXPECT_EQ(rig.post("secret-key-3").status, 503);
    EXPECT_EQ(rig.get("/do/order/secret-key-1").status, 503);
    for (const auto& span : rig.spans()) {
      EXPECT_EQ(span.find("secret"), std::string::npos) << span;
      const std::lock_guard lock(mutex);
      logged += span;
    }
    log::flush();
  }
  log::configure(log::Level::info, log::Format::human);
  const std::lock_guard lock(mutex);
  EXPECT_NE(logged.find("/do/order/{idempotency_key}"), std::string::npos);
  EXPECT_NE(logged.find(orders::key_hash("secret-key-1")), std::string::npos);
  EXPECT_EQ(logged.find("secret-key"), std::string::npos);
  EXPECT_EQ(logged.find("SECRET-X"), std::string::npos);
  EXPECT_EQ(logged.find(kQty), std::string::npos);
}

}  // namespace
}  // namespace todoke::test

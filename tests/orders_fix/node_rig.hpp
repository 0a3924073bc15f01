// Workers as processes, with a broker that speaks FIX.
#pragma once

#include <string>

#include <fmt/format.h>

#include "broker.hpp"
#include "orders/rig.hpp"

namespace todoke::test {

class FixNodeTest : public OrdersTest {
 protected:
  [[nodiscard]] Environment environment(const Environment& more = {}) const {
    Environment all{"TODOKE_BROKER_ADAPTER=fix",
                    "TODOKE_ORDERS_FIX_HOST=127.0.0.1",
                    fmt::format("TODOKE_ORDERS_FIX_PORT={}", broker.port()),
                    "TODOKE_ORDERS_FIX_SENDER_COMP_ID=TODOKE",
                    "TODOKE_ORDERS_FIX_TARGET_COMP_ID=BROKER",
                    "TODOKE_ORDERS_FIX_LEASE_SEC=3",
                    "BROKER_TIMEOUT_MS=3000",
                    "OUTBOX_LOCK_LEASE_SEC=4"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::string result(const std::string& key, const std::string& path) {
    return ledger(key, fmt::format("coalesce(response_payload_json #>> '{}', '')", path));
  }

  Broker broker;
};

}  // namespace todoke::test

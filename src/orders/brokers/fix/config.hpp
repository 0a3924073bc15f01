// The settings of the FIX adapter.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/config.hpp"
#include "orders/brokers/fix/engine/session.hpp"

namespace todoke::orders::keys {

inline constexpr Key<std::string> kFixHost{{
    .name = "orders.fix.host",
    .fallback = "",
    .meaning = "Host of the FIX 4.4 broker (broker.adapter = fix).",
}};
inline constexpr Key<std::int64_t> kFixPort{{
    .name = "orders.fix.port",
    .fallback = "0",
    .meaning = "Port of the FIX broker.",
    .min = 0,
    .max = 65'535,
}};
inline constexpr Key<std::string> kFixSender{{
    .name = "orders.fix.sender_comp_id",
    .fallback = "",
    .meaning = "SenderCompID: this side's name, as agreed with the broker.",
}};
inline constexpr Key<std::string> kFixTarget{{
    .name = "orders.fix.target_comp_id",
    .fallback = "",
    .meaning = "TargetCompID: the broker's name.",
}};
inline constexpr Key<std::string> kFixUsername{{
    .name = "orders.fix.username",
    .fallback = "",
    .meaning = "Username of the Logon. Empty: none is sent, and no password.",
}};
inline constexpr Key<std::string> kFixPassword{{
    .name = "orders.fix.password",
    .fallback = "",
    .meaning = "Password of the Logon.",
    .secret = true,
}};
inline constexpr Key<std::string> kFixAccount{{
    .name = "orders.fix.account",
    .fallback = "",
    .meaning = "Account of every order. Empty: none is sent.",
}};
inline constexpr Key<std::chrono::milliseconds> kFixHeartbeat{{
    .name = "orders.fix.heartbeat_sec",
    .fallback = "30",
    .meaning = "HeartBtInt: how often either side shows that it is there. Whole seconds.",
    .unit = "s",
    .min = 1'000,
    .max = 3'600'000,
}};
inline constexpr Key<bool> kFixReset{{
    .name = "orders.fix.reset_on_logon",
    .fallback = "false",
    .meaning = "Whether sequence numbers begin with 1 at every Logon. Reports that were under way are then "
               "lost to the session and found by status requests only.",
}};
inline constexpr Key<std::int64_t> kFixClOrdIdMax{{
    .name = "orders.fix.clordid_max",
    .fallback = "20",
    .meaning = "The longest ClOrdID that the broker takes. A key that does not fit goes as a hash. A change "
               "gives orders that are under way another ClOrdID: drain the outbox before.",
    .min = 16,
    .max = 64,
}};
inline constexpr Key<std::chrono::milliseconds> kFixLease{{
    .name = "orders.fix.lease_sec",
    .fallback = "10",
    .meaning = "How long the session stays a worker's without a sign of life; another one takes it then.",
    .unit = "s",
    .min = 2'000,
    .max = 600'000,
}};
inline constexpr Key<std::int64_t> kFixQuestionsPerSec{{
    .name = "orders.fix.questions_per_sec",
    .fallback = "20",
    .meaning = "How many status requests a second go to the broker about orders in doubt and orders that it "
               "works on. Stay below what the broker allows a session, and leave room for orders.",
    .min = 1,
    .max = 1'000,
}};

}  // namespace todoke::orders::keys

namespace todoke::orders {

struct FixOptions {
  fix::SessionSettings session;  // without its numbers
  std::string name;              // SenderCompID->TargetCompID
  std::string account;
  std::size_t cl_ord_id_max = 20;
  std::chrono::milliseconds lease{10'000};
  int questions_per_sec = 20;

  // A refusal names the missing settings.
  static Expected<FixOptions> from(const Config& config);
};

std::span<const KeySpec* const> fix_config_keys();

}  // namespace todoke::orders

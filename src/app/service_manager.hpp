// What systemd hears of a node that it has started (Type=notify, WatchdogSec): that it is ready, that it
// stops, and, as long as its main loop turns, that it lives. Without a service manager nothing is sent.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/metrics.hpp"
#include "base/periodic.hpp"

namespace todoke::app {

// One datagram to the socket of the service manager, such as READY=1. One that can't be sent is logged: the
// manager would take the node for one that never came up.
void tell_service_manager(std::string_view state);

// How often the service manager wants to hear from this process; nothing when it does not ask.
std::optional<std::chrono::microseconds> heartbeat_asked_for();

// Says that the loop it runs on turns, three times in each interval.
class Heartbeat final : public PeriodicService {
 public:
  Heartbeat(const Executor& executor, std::chrono::microseconds interval, metrics::Registry& registry);

  [[nodiscard]] bool essential() const override { return false; }

 private:
  Task<void> round(RoundCause cause) override;
};

}  // namespace todoke::app

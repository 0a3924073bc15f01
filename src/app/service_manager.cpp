#include "app/service_manager.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>
#include <system_error>
#include <unistd.h>

#include "base/fd.hpp"
#include "base/log.hpp"

namespace todoke::app {
namespace {

// Beats that may be late before the manager takes the node for dead.
constexpr int kBeatsInInterval = 3;

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// 0 for what is no number.
std::int64_t number_in(std::string_view text) {
  std::int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc() && read.ptr == text.data() + text.size() ? number : 0;
}

}  // namespace

void tell_service_manager(std::string_view state) {
  const auto path = environment("NOTIFY_SOCKET");
  if (path.empty()) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  bool sent = false;
  if (path.size() < sizeof address.sun_path) {
    std::copy(path.begin(), path.end(), address.sun_path);
    if (path.front() == '@') address.sun_path[0] = '\0';  // a name without a file
    const Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
    sent = socket && sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                            reinterpret_cast<const sockaddr*>(&address), size) >= 0;
  }
  if (!sent) {
    const auto why = path.size() < sizeof address.sun_path
                         ? std::error_code(errno, std::generic_category())
                         : std::make_error_code(std::errc::filename_too_long);
    log::warning("node", "the service manager can't be told", {{"state", state}, {"error", why.message()}});
  }
}

std::optional<std::chrono::microseconds> heartbeat_asked_for() {
  const auto interval = number_in(environment("WATCHDOG_USEC"));
  const auto pid = environment("WATCHDOG_PID");
  if (interval <= 0 || (!pid.empty() && number_in(pid) != getpid())) return std::nullopt;
  return std::chrono::microseconds(interval);
}

Heartbeat::Heartbeat(const Executor& executor, std::chrono::microseconds interval,
                     metrics::Registry& registry)
    : PeriodicService(
          executor,
          {.name = "heartbeat",
           .failed = "the service manager was not told",
           .every =
               std::max(std::chrono::milliseconds(1),
                        std::chrono::duration_cast<std::chrono::milliseconds>(interval / kBeatsInInterval)),
           .begins_at_once = true},
          registry) {}

Task<void> Heartbeat::round(RoundCause) {
  tell_service_manager("WATCHDOG=1");
  co_return;
}

}  // namespace todoke::app

#include "net/refusal_log.hpp"

#include <utility>

#include "base/log.hpp"
#include "net/client_network.hpp"

namespace todoke::net {
namespace {

constexpr std::chrono::minutes kWindow(1);
constexpr std::chrono::minutes kSuspicionEvery(10);

}  // namespace

RefusalLog::RefusalLog(std::string what, metrics::Registry& registry)
    : what_(std::move(what)),
      suspected_(registry.counter("todoke_proxy_suspected_total",
                                  "Times that most refusals hit a peer that looks like a proxy and is not "
                                  "in server.trusted_proxies.")) {}

void RefusalLog::forwarded(std::string_view peer_ip) {
  const std::lock_guard lock(mutex_);
  if (votes_ == 0) {
    forwarder_ = peer_ip;
    of_forwarder_ = 0;
  }
  // So many votes at most that another proxy takes its place soon.
  constexpr std::uint64_t kVotesMax = 100;
  if (forwarder_ != peer_ip) {
    --votes_;
  } else if (votes_ < kVotesMax) {
    ++votes_;
  }
}

void RefusalLog::refused(std::string_view why, std::string_view client_ip, SteadyTime now) {
  bool line = false;
  bool suspicion = false;
  std::uint64_t left_out = 0;
  {
    const std::lock_guard lock(mutex_);
    line = lines_.allows(now);
    if (line) left_out = lines_.take_left_out();
    suspicion = is_suspicious(client_ip, now);
  }
  const auto network = line || suspicion ? shown_network(client_ip) : std::string();
  if (line) {
    log::info(what_, "refused", {{"why", why}, {"network", network}, {"left_out", left_out}});
  }
  if (!suspicion) return;
  suspected_.add();
  log::warning(what_,
               "most refusals hit one address that names other clients: if it is a proxy, list it in "
               "server.trusted_proxies, or all clients behind it count as one",
               {{"network", network}});
}

bool RefusalLog::is_suspicious(std::string_view client_ip, SteadyTime now) {
  if (now - window_began_ >= kWindow) {
    window_began_ = now;
    refusals_ = of_forwarder_ = 0;
  }
  ++refusals_;
  if (votes_ == 0 || client_ip != forwarder_) return false;
  ++of_forwarder_;
  if (of_forwarder_ < kSuspicionMin || of_forwarder_ * 2 < refusals_) return false;
  if (suspected_at_ != SteadyTime{} && now - suspected_at_ < kSuspicionEvery) return false;
  suspected_at_ = now;
  return true;
}

}  // namespace todoke::net

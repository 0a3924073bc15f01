#include "gossip/peer_limits.hpp"

namespace todoke::gossip {
namespace {

constexpr double kSecondsPerMinute = 60;
constexpr double kAllOverEach = 2;

net::Rate rate_of_each(const PeerRates& rates) {
  return {rates.events_per_second, rates.events_per_second};
}

net::Rate rate_of_all(const PeerRates& rates) {
  return {kAllOverEach * rates.events_per_second, kAllOverEach * rates.events_per_second};
}

net::Rate rate_of_refused(const PeerRates& rates) {
  return {rates.refused_per_minute / kSecondsPerMinute, rates.refused_per_minute};
}

std::string_view key_of(const NodeId& id) {
  return {reinterpret_cast<const char*>(id.bytes().data()), id.bytes().size()};
}

}  // namespace

PeerLimits::PeerLimits(PeerRates rates, const Clock& clock, metrics::Registry& registry)
    : clock_(clock),
      each_("gossip", rate_of_each(rates), rates.on, clock, registry, kPeersMax),
      all_("gossip_all", rate_of_all(rates), rates.on, clock, registry, 1),
      refused_("gossip_refused", rate_of_refused(rates), rates.on, clock, registry, kPeersMax) {}

void PeerLimits::set(PeerRates rates) {
  each_.set(rate_of_each(rates), rates.on);
  all_.set(rate_of_all(rates), rates.on);
  refused_.set(rate_of_refused(rates), rates.on);
}

PeerLimits::Verdict PeerLimits::charge(const NodeId& from) {
  if (is_muted(from)) return Verdict::muted;
  if (!each_.take(key_of(from)).allowed || !all_.take("").allowed) return Verdict::too_fast;
  return Verdict::listen;
}

bool PeerLimits::refused(const NodeId& from) {
  if (refused_.take(key_of(from)).allowed) return false;
  make_room();
  muted_.insert_or_assign(from, clock_.steady() + kMutedFor);
  return true;
}

bool PeerLimits::is_muted(const NodeId& from) {
  const auto found = muted_.find(from);
  if (found == muted_.end()) return false;
  if (clock_.steady() < found->second) return true;
  muted_.erase(found);
  return false;
}

void PeerLimits::make_room() {
  if (muted_.size() < kPeersMax) return;
  const auto now = clock_.steady();
  std::erase_if(muted_, [now](const auto& entry) { return entry.second <= now; });
  if (muted_.size() >= kPeersMax) muted_.erase(muted_.begin());
}

}  // namespace todoke::gossip

#include "gossip/peer_book.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "gossip/config.hpp"
#include "gossip/gossip_sql.hpp"
#include "pg/channels.hpp"

namespace todoke::gossip {
namespace {

constexpr std::chrono::seconds kPollEvery(15);
constexpr std::chrono::seconds kReadMax(10);

// The configuration was checked.
std::shared_ptr<const PeerBook::Peers> configured_peers(const Config& config) {
  PeerBook::Peers peers;
  for (const auto& text : config.get(keys::kPeers)) peers.push_back(parse_peer(text).value());
  return std::make_shared<const PeerBook::Peers>(std::move(peers));
}

void add_peer(PeerBook::Peers& peers, Peer peer) {
  const bool is_there =
      std::any_of(peers.begin(), peers.end(), [&](const auto& other) { return other.id == peer.id; });
  if (!is_there) peers.push_back(std::move(peer));
}

}  // namespace

PeerBook::PeerBook(const Executor& executor, const Config& config, pg::Pool& pool, pg::Listener& listener,
                   metrics::Registry& registry)
    : PeriodicService(executor,
                      {.name = "gossip peers",
                       .failed = "the list of gossip peers was not read; the old one holds",
                       .every = kPollEvery},
                      registry),
      pool_(pool),
      listener_(listener),
      configured_(configured_peers(config)),
      peers_(configured_.load()) {}

void PeerBook::change(const Config& config) {
  configured_.store(configured_peers(config));
  wake_up();
}

Task<void> PeerBook::start() {
  co_await round(RoundCause::time);
  subscription_ = listener_.subscribe(pg::channels::kGossip, [this](const pg::Wake&) { wake_up(); });
}

Task<void> PeerBook::run() {
  co_await PeriodicService::run();
  subscription_ = {};
}

Task<void> PeerBook::round(RoundCause /*cause*/) {
  const auto deadline = Deadline::after(kReadMax);
  const auto lease = co_await pool_.acquire(deadline);
  const auto rows = co_await lease->query(sql::kReadPeers, {kPeersMax}, deadline);
  Peers fresh;
  for (const auto& peer : *configured_.load()) add_peer(fresh, peer);
  for (const auto& row : rows) {
    auto peer = parse_peer(row.get<std::string>(0) + "@" + row.get<std::string>(1));
    if (peer) {
      add_peer(fresh, std::move(*peer));
    } else {
      log::warning("gossip", "a row of gossip_peers is not dialled", {{"error", peer.error().message}});
    }
  }
  if (fresh == *peers_.load()) co_return;
  peers_.store(std::make_shared<const Peers>(std::move(fresh)));
  on_change_();
}

}  // namespace todoke::gossip

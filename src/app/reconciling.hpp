// Brings two relays to the same events by NIP-77, so that only what is missing travels: compares, fetches
// what is lacking here, sends what the peer lacks. What is too much at once, here or there, is split by time,
// so that any number of events can be compared; repeating it costs the comparison alone.
//
//   take a span of time ──▶ read our ids ──▶ compare ──▶ fetch and store ──▶ send ──▶ next span
//         ▲──────── too many: the halves of it ◀──┘
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "app/intake.hpp"
#include "app/publishing.hpp"
#include "app/relay_peer.hpp"
#include "app/store_scope.hpp"

namespace todoke::app {

struct ReconcilingOptions {
  bool down = true;  // what is lacking here comes
  bool up = false;   // what the peer lacks goes there: what an anonymous reader may see
  // Events of one comparison; 40 bytes each, and twice that while they are read.
  std::size_t events_max = 1'000'000;
  // Called before each fetch and send; throws to stop.
  std::function<Task<void>()> check = nullptr;
  std::function<void(const std::string&, std::uint64_t)> show = [](const std::string&, std::uint64_t) {};
};

class Reconciling {
 public:
  Reconciling(RelayPeer& peer, StoreScope& store, Intake& intake, ReconcilingOptions options)
      : peer_(peer),
        store_(store),
        intake_(intake),
        options_(std::move(options)),
        publishing_(peer.client(), kToldMax) {}

  // Throws NoNegentropy, UserError, NetError and what the database throws.
  Task<void> run(nostr::Filter filter);

  [[nodiscard]] std::uint64_t compared() const { return compared_; }
  [[nodiscard]] std::uint64_t lacked() const { return lacked_; }
  [[nodiscard]] std::uint64_t came() const { return came_; }
  [[nodiscard]] std::uint64_t kept() const { return kept_; }  // that the peer lacks and is not to see
  [[nodiscard]] const Published& sent() const { return publishing_.counts(); }

 private:
  static constexpr std::uint64_t kToldMax = 20;

  // False: too many.
  Task<bool> run_span(const nostr::Filter& filter);
  Task<void> fetch(const nostr::Filter& filter, std::vector<nostr::EventId> ids);
  Task<void> send(std::vector<nostr::EventId> ids);

  RelayPeer& peer_;
  StoreScope& store_;
  Intake& intake_;
  const ReconcilingOptions options_;
  Publishing publishing_;
  std::uint64_t compared_ = 0;  // our events that were
  std::uint64_t lacked_ = 0;    // here
  std::uint64_t came_ = 0;
  std::uint64_t kept_ = 0;
};

}  // namespace todoke::app

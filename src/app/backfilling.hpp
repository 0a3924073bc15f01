// Fills topics with what another relay has of them.
//
//   a todoke relay   by the order of its log, from where the last filling ended, oldest first
//   knows NIP-77     by comparing, so that only what is missing comes
//   knows neither    by time, newest first: everything once, and from then on what is younger than the last
//                    filling that came to its end, with a day of margin
//
// How far each topic came stands in cn_relay.backfill_cursors. Safe to interrupt and to repeat. Memory: a
// page of events, and 40 bytes for each id that is compared.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/intake.hpp"
#include "app/relay_peer.hpp"
#include "app/store_scope.hpp"
#include "pg/connection.hpp"

namespace todoke::app {

struct BackfillOptions {
  std::string peer;  // the name of the cursors: the other relay's URL
  // Compares only what is younger than the last filling, with its margin.
  bool only_younger = false;
  NoRoom no_room = NoRoom::wait;
  // Called before each question; throws to stop.
  std::function<Task<void>()> check = nullptr;
  // The topic that is being filled, and what is done with it.
  std::function<void(const std::string& topic, const std::string& what, std::uint64_t stored)> show = nullptr;
};

class Backfilling {
 public:
  // What a node takes must be there as long as this.
  Backfilling(pg::Connection& connection, StoreScope& store, RelayPeer& peer, BackfillOptions options,
              Executor executor)
      : connection_(connection),
        store_(store),
        peer_(peer),
        options_(std::move(options)),
        intake_(store, std::move(executor), options_.no_room) {}

  // Throws UserError, NetError and what the database throws.
  Task<void> run(const std::vector<std::string>& topics);
  // To be awaited after run(), whatever it threw.
  Task<void> wait_for_outcomes() { co_await intake_.wait_for_outcomes(); }

  [[nodiscard]] std::size_t topics_done() const { return topics_done_; }
  [[nodiscard]] const Intake& intake() const { return intake_; }

 private:
  // How far the last filling came.
  struct Cursor {
    std::optional<std::int64_t> seq;
    std::optional<std::int64_t> since;
  };

  Task<void> fill(const std::string& topic);
  Task<void> by_seq(const std::string& topic, Cursor cursor, std::int64_t head);
  Task<void> by_comparing(const std::string& topic, Cursor cursor);
  Task<void> by_time(const std::string& topic, Cursor cursor);
  Task<void> take(std::vector<std::string> events);
  void refuse_failures() const;
  void show(const std::string& what);
  Task<Cursor> cursor_of(const std::string& topic);
  Task<void> keep(const std::string& topic, std::optional<std::int64_t> seq,
                  std::optional<std::int64_t> since);

  pg::Connection& connection_;
  StoreScope& store_;
  RelayPeer& peer_;
  const BackfillOptions options_;
  Intake intake_;
  std::string topic_;
  bool compares_ = true;  // as far as is known
  std::size_t topics_done_ = 0;
};

// Those that the node takes and that allow backfill, in order.
std::vector<std::string> topics_to_backfill(const relay::TopicSet& topics);

}  // namespace todoke::app

// When the watch asks the broker: at which pace, and what after a question that got no answer. Pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/backoff.hpp"
#include "base/clock.hpp"

namespace todoke::orders {

// Gives each of many callers its moment, `per_sec` of them in a second.
class FixPace {
 public:
  explicit FixPace(int per_sec) : between_(std::chrono::nanoseconds(std::chrono::seconds(1)) / per_sec) {}
  // The moment of the caller that asks now.
  SteadyTime next_turn(SteadyTime now) {
    const auto turn = std::max(next_, now);
    next_ = turn + std::chrono::duration_cast<SteadyTime::duration>(between_);
    return turn;
  }

 private:
  std::chrono::nanoseconds between_;
  SteadyTime next_{};
};

struct WatchedOrder {
  std::int64_t outbox_id = 0;
  std::string cl_ord_id;
  std::string document;
};

// Pauses before a question is repeated: each is twice the one before.
struct FixPauses {
  std::chrono::milliseconds first;
  std::chrono::milliseconds most;
};

// Orders whose last question got no answer: each is asked about again after growing pauses, until its turn
// comes with the others anyway. Beyond kMost orders a further one waits for that turn.
class FixUnanswered {
 public:
  static constexpr std::size_t kMost = 256;

  FixUnanswered(FixPauses pauses, std::chrono::milliseconds turn_every)
      : pauses_(pauses), turn_every_(turn_every) {}

  // The question just asked got no answer.
  void add(const WatchedOrder& order, SteadyTime now) {
    auto found = orders_.find(order.outbox_id);
    if (found == orders_.end()) {
      if (orders_.size() >= kMost) return;
      Entry entry{order, Backoff(pauses_.first, pauses_.most), now, now + turn_every_};
      found = orders_.emplace(order.outbox_id, std::move(entry)).first;
    }
    auto& entry = found->second;
    entry.ask_at = now + entry.backoff.next();
    if (entry.ask_at >= entry.turn_at) orders_.erase(found);
  }
  // It was answered, or its turn has come.
  void remove(std::int64_t outbox_id) { orders_.erase(outbox_id); }
  [[nodiscard]] std::vector<WatchedOrder> due(SteadyTime now) const {
    std::vector<WatchedOrder> orders;
    for (const auto& [id, entry] : orders_) {
      if (entry.ask_at <= now) orders.push_back(entry.order);
    }
    return orders;
  }
  [[nodiscard]] std::size_t size() const { return orders_.size(); }

 private:
  struct Entry {
    WatchedOrder order;
    Backoff backoff;
    SteadyTime ask_at;
    SteadyTime turn_at;
  };
  FixPauses pauses_;
  std::chrono::milliseconds turn_every_;
  std::map<std::int64_t, Entry> orders_;  // by outbox_id
};

// A broker that leaves kInARow questions in a row without an answer gets none for a pause, which grows until
// it answers or the session begins anew.
class FixSilence {
 public:
  static constexpr std::size_t kInARow = 8;

  explicit FixSilence(FixPauses pauses) : backoff_(pauses.first, pauses.most) {}

  // True: the first pause of this silence begins.
  bool add(SteadyTime now) {
    if (++in_a_row_ < kInARow) return false;
    in_a_row_ = 0;
    until_ = now + backoff_.next();
    const bool is_first = !is_silent_;
    is_silent_ = true;
    return is_first;
  }
  void end() {
    in_a_row_ = 0;
    until_ = {};
    is_silent_ = false;
    backoff_.reset();
  }
  [[nodiscard]] bool is_pause(SteadyTime now) const { return now < until_; }

 private:
  Backoff backoff_;
  std::size_t in_a_row_ = 0;
  SteadyTime until_{};
  bool is_silent_ = false;
};

}  // namespace todoke::orders

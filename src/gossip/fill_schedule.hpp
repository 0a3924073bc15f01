// When which neighbour is asked about which topic, and how far back. Pure.
//
//   a neighbour in a topic ──▶ due at once, the whole window
//   asked to the end       ──▶ due again after `every`, from a day before that on
//   not to the end         ──▶ due again after a second, two, four, up to a minute
//   soon(): messages were lost, or the neighbour has been filled itself ──▶ due, a second after the last time
//   no neighbour any more  ──▶ forgotten
//
// A neighbour is asked about one topic at a time. One that gives no answer several times, because it speaks
// gossip alone, is left in peace for a while; one that has died and is there again is not.
//
// Bounded: one entry for each neighbour in each topic; the library keeps a handful of neighbours in each.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/async.hpp"
#include "gossip/ids.hpp"

namespace todoke::gossip {

class FillSchedule {
 public:
  using Pair = std::pair<ChannelId, NodeId>;
  struct Job {
    Pair pair;
    std::optional<SystemTime> whole_until;  // everything up to here was compared; nothing: nothing was
  };

  static constexpr std::chrono::seconds kGapMin{1};
  static constexpr std::chrono::seconds kRetryMost{60};
  static constexpr std::chrono::minutes kRestFor{5};
  static constexpr int kUnansweredMax = 4;

  void add(const Pair& pair, SteadyTime now) {
    if (entries_.contains(pair)) return;
    answered(pair.second);
    entries_.emplace(pair, Entry{.due = now});
    queue_.emplace(now, pair);
  }
  // Of a job that is under way, too: its end finds nothing.
  void remove(const Pair& pair) {
    const auto found = entries_.find(pair);
    if (found == entries_.end()) return;
    queue_.erase({found->second.due, pair});
    entries_.erase(found);
    answered(pair.second);
  }

  void soon(const Pair& pair, SteadyTime now) {
    const auto found = entries_.find(pair);
    if (found == entries_.end()) return;
    answered(pair.second);
    auto& entry = found->second;
    if (entry.is_under_way) {
      entry.again = true;
    } else {
      move(pair, entry, std::min(entry.due, std::max(now, entry.ended + kGapMin)));
    }
  }

  // The one that is due for the longest time, of neighbours that are not asked just now; it is under way
  // then.
  std::optional<Job> next(SteadyTime now) {
    const auto found = std::find_if(queue_.begin(), queue_.end(), [&](const auto& place) {
      const auto& peer = place.second.second;
      return place.first > now || (!asked_.contains(peer) && !is_resting(peer, now));
    });
    if (found == queue_.end() || found->first > now) return std::nullopt;
    const auto pair = found->second;
    queue_.erase(found);
    asked_.insert(pair.second);
    auto& entry = entries_.at(pair);
    entry.is_under_way = true;
    return Job{pair, entry.whole_until};
  }
  // `began`: when the job did; nothing: it did not come to its end.
  void ended(const Pair& pair, std::optional<SystemTime> began, SteadyTime now,
             std::chrono::milliseconds every) {
    asked_.erase(pair.second);
    const auto found = entries_.find(pair);
    if (found == entries_.end() || !found->second.is_under_way) return;
    auto& entry = found->second;
    entry.is_under_way = false;
    entry.ended = now;
    if (began) {
      entry.whole_until = began;
      entry.wait = kGapMin;
    }
    const bool again = std::exchange(entry.again, false);
    auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(entry.wait);
    if (began && !again) wait = every;
    if (!began) entry.wait = std::min(entry.wait * 2, kRetryMost);
    entry.due = now + wait;
    queue_.emplace(entry.due, pair);
  }

  // The neighbour gave no answer, or one.
  void unanswered(const NodeId& peer, SteadyTime now) {
    auto& silence = silent_[peer];
    if (++silence.times >= kUnansweredMax) silence.rests_until = now + kRestFor;
  }
  void answered(const NodeId& peer) { silent_.erase(peer); }

  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    SteadyTime due{};
    SteadyTime ended{};
    bool is_under_way = false;
    bool again = false;
    std::optional<SystemTime> whole_until = std::nullopt;
    std::chrono::seconds wait = kGapMin;
  };

  struct Silence {
    int times = 0;
    SteadyTime rests_until{};
  };
  [[nodiscard]] bool is_resting(const NodeId& peer, SteadyTime now) const {
    const auto found = silent_.find(peer);
    return found != silent_.end() && now < found->second.rests_until;
  }

  void move(const Pair& pair, Entry& entry, SteadyTime due) {
    queue_.erase({entry.due, pair});
    entry.due = due;
    queue_.emplace(due, pair);
  }

  std::map<Pair, Entry> entries_;
  std::set<std::pair<SteadyTime, Pair>> queue_;  // those that are not under way
  std::set<NodeId> asked_;                       // of the jobs under way
  std::map<NodeId, Silence> silent_;
};

}  // namespace todoke::gossip

#include "relay/batch_plan.hpp"

#include <cstdint>
#include <string>
#include <utility>

#include "base/hash_table.hpp"

namespace todoke::relay {
namespace {

constexpr std::size_t kLookAhead = 4;

// The ids and keys that an event touches; the sets are kept apart by type.
class Touched {
 public:
  // False when one of them was touched before. All of them are touched from now on.
  bool touch(const Incoming& incoming) {
    bool fresh = ids_.insert(incoming.event->id()).second;
    if (!incoming.effective_key.empty()) fresh &= keys_.insert(incoming.effective_key).second;
    for (const auto& id : incoming.targets.events) fresh &= ids_.insert(id).second;
    for (const auto& key : incoming.target_keys) fresh &= keys_.insert(key).second;
    fresh &= touch_people(incoming);
    return touch_author(incoming) && fresh;
  }

 private:
  enum : std::uint8_t { kVersions = 1, kDeletions = 2 };

  // A request to vanish refuses everything of its author, and gift wraps for them.
  bool touch_people(const Incoming& incoming) {
    const auto& author = incoming.event->pubkey();
    if (incoming.event->kind() == nostr::kVanish) {
      const bool fresh = !people_.contains(author);
      people_.insert(author);
      return vanished_.insert(author).second && fresh;
    }
    bool fresh = true;
    const auto touch_one = [&](const nostr::Pubkey& person) {
      people_.insert(person);
      fresh &= !vanished_.contains(person);
    };
    touch_one(author);
    for (const auto& recipient : incoming.recipients) touch_one(recipient);
    return fresh;
  }

  // A deletion by id does not tell the key of its target: it may be the version that another event of its
  // author replaces.
  bool touch_author(const Incoming& incoming) {
    const bool deletes = !incoming.targets.events.empty();
    if (!deletes && incoming.effective_key.empty()) return true;
    auto& before = authors_[incoming.event->pubkey()];
    const bool fresh = (before & (deletes ? kVersions : kDeletions)) == 0;
    before |= deletes ? kDeletions : kVersions;
    return fresh;
  }

  HashSet<nostr::EventId> ids_;
  HashSet<std::string> keys_;
  HashMap<nostr::Pubkey, std::uint8_t> authors_;
  HashSet<nostr::Pubkey> people_;    // authors of all events, recipients of gift wraps
  HashSet<nostr::Pubkey> vanished_;  // authors of requests to vanish
};

}  // namespace

std::vector<Incoming> take_batch(std::deque<Incoming>& queue, const BatchLimits& limits) {
  std::vector<Incoming> batch;
  std::vector<Incoming> left;
  Touched touched;
  std::size_t rows = 0;
  std::size_t rows_looked_at = 0;
  while (!queue.empty() && batch.size() < limits.events_max &&
         batch.size() + left.size() < limits.events_max * kLookAhead &&
         rows_looked_at < limits.rows_max * kLookAhead) {
    auto& next = queue.front();
    if (!batch.empty() && rows + next.rows > limits.rows_max) break;
    rows_looked_at += next.rows;
    if (touched.touch(next)) {
      rows += next.rows;
      batch.push_back(std::move(next));
    } else {
      left.push_back(std::move(next));
    }
    queue.pop_front();
  }
  while (!left.empty()) {
    queue.push_front(std::move(left.back()));
    left.pop_back();
  }
  return batch;
}

}  // namespace todoke::relay

#include "relay/log_follower.hpp"

#include <algorithm>
#include <utility>

namespace todoke::relay {

std::size_t LogFollower::appended(Batch batch) {
  for (const auto& gone : batch.log.gone) ++gone_later_[gone.id];
  batches_.push_back(std::move(batch));
  if (batches_.size() <= batches_max_) return 0;
  const auto count = batches_.size();
  let_go();
  return count;
}

bool LogFollower::told(nostr::Seq seq) {
  if (seq <= head_) return false;
  told_ = true;
  return true;
}

void LogFollower::restored() {
  ++restores_;
  let_go();
}

void LogFollower::let_go() {
  if (!batches_.empty()) own_head_ = std::max(own_head_, batches_.back().log.head);
  batches_.clear();
  gone_later_.clear();
  let_go_ = true;
  told_ = true;
}

std::optional<LogFollower::Batch> LogFollower::next_batch() {
  if (fetching_ || batches_.empty() || batches_.front().log.head_before > head_) return std::nullopt;
  auto batch = std::move(batches_.front());
  batches_.pop_front();
  forget_gone(batch);
  return batch;
}

void LogFollower::forget_gone(const Batch& batch) {
  for (const auto& gone : batch.log.gone) {
    const auto found = gone_later_.find(gone.id);
    if (--found->second == 0) gone_later_.erase(found);
  }
}

void LogFollower::applied(const Batch& batch) {
  head_ = std::max(head_, batch.log.head);
  own_head_ = std::max(own_head_, batch.log.head);
}

std::optional<LogFollower::Fetch> LogFollower::next_fetch() {
  if (batches_.empty() && !told_) return std::nullopt;
  fetching_ = true;
  if (!batches_.empty()) return Fetch{batches_.front().log.head_before, restores_};
  told_ = false;
  return Fetch{kNoEnd, restores_};
}

bool LogFollower::pass(nostr::Seq seq) {
  if (seq <= head_) return false;
  head_ = seq;
  return true;
}

void LogFollower::fetched(const Fetch& fetch, bool is_more_left) {
  fetching_ = false;
  if (!is_current(fetch)) return;  // restored() asks for everything
  if (fetch.until != kNoEnd) {
    if (!is_more_left) head_ = std::max(head_, fetch.until);
    return;
  }
  told_ = told_ || is_more_left;
  if (!told_) let_go_ = false;
}

void LogFollower::fetch_failed() {
  fetching_ = false;
  told_ = true;
}

nostr::Seq LogFollower::newest() const {
  const auto waiting = batches_.empty() ? nostr::Seq{} : batches_.back().log.head;
  return std::max({head_, own_head_, waiting});
}

bool LogFollower::may_be_gone_later(const nostr::EventId& id) const {
  return let_go_ || gone_later_.contains(id);
}

std::optional<nostr::Seq> LogFollower::untold() const {
  if (others_told_ >= own_head_) return std::nullopt;
  return own_head_;
}

}  // namespace todoke::relay

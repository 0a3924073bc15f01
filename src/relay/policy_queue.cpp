#include "relay/policy_queue.hpp"

#include <algorithm>
#include <utility>

namespace todoke::relay {

void PolicyQueue::add(Question question) {
  bytes_ += question.line.size();
  questions_.push_back(std::move(question));
}

PolicyQueue::Question PolicyQueue::take_at(Questions::iterator at) {
  auto question = std::move(*at);
  questions_.erase(at);
  bytes_ -= question.line.size();
  return question;
}

std::optional<PolicyQueue::Question> PolicyQueue::take(const nostr::EventId& id) {
  const auto at = std::find_if(questions_.begin(), questions_.end(),
                               [&](const auto& question) { return question.id == id; });
  if (at == questions_.end()) return std::nullopt;
  return take_at(at);
}

std::vector<PolicyQueue::Question> PolicyQueue::take_overdue(SteadyTime now) {
  std::vector<Question> overdue;
  for (auto at = questions_.begin(); at != questions_.end();) {
    const auto next = std::next(at);
    if (at->until <= now) overdue.push_back(take_at(at));
    at = next;
  }
  return overdue;
}

std::vector<PolicyQueue::Question> PolicyQueue::take_all() {
  return take_overdue(SteadyTime::max());
}

std::optional<SteadyTime> PolicyQueue::first_until() const {
  if (questions_.empty()) return std::nullopt;
  return std::min_element(questions_.begin(), questions_.end(),
                          [](const auto& a, const auto& b) { return a.until < b.until; })
      ->until;
}

std::string PolicyQueue::lines() const {
  std::string lines;
  for (const auto& question : questions_) lines += question.line;
  return lines;
}

}  // namespace todoke::relay

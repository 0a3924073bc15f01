// Questions that the operator's program has not answered yet, in the order in which they were asked. Not
// thread-safe. Answers may come in any order; finding a question costs a look at those that are older, of
// which its owner bounds the number.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "base/async.hpp"
#include "relay/policy_protocol.hpp"

namespace todoke::relay {

class PolicyQueue {
 public:
  struct Question {
    nostr::EventId id;
    std::string line;
    SteadyTime asked_at;
    SteadyTime until;
    std::function<void(PolicyVerdict)> tell;
  };

  void add(Question question);
  // The oldest one about this event: two clients may have sent the same.
  std::optional<Question> take(const nostr::EventId& id);
  std::vector<Question> take_overdue(SteadyTime now);
  std::vector<Question> take_all();

  [[nodiscard]] std::size_t size() const { return questions_.size(); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::optional<SteadyTime> first_until() const;
  // All lines, for a program that has just been started.
  [[nodiscard]] std::string lines() const;

 private:
  using Questions = std::list<Question>;
  Question take_at(Questions::iterator at);

  Questions questions_;
  std::size_t bytes_ = 0;
};

}  // namespace todoke::relay

// Questions to other nodes that wait for their answers. The endpoint answers or refuses each within three
// minutes, so nothing here has a limit of its own. ask() on the executor; answered() from anywhere.
//
// Bounded by its caller: one question for each comparison and each piece of news under way (filler.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/async.hpp"
#include "base/hash_table.hpp"
#include "gossip/endpoint.hpp"

namespace todoke::gossip {

class Asking {
 public:
  explicit Asking(Executor executor) : executor_(std::move(executor)) {}

  // Nothing: the node can't be reached, refuses the question, or the bridge stops.
  Task<std::optional<std::string>> ask(Endpoint& endpoint, NodeId peer, std::string question) {
    const auto waiting = std::make_shared<Waiting>(executor_);
    endpoint.ask(peer, remember(waiting), question);
    co_await waiting->over.wait();
    co_return std::move(waiting->answer);
  }

  void answered(std::uint64_t number, std::optional<std::string> answer) {
    const std::lock_guard lock(mutex_);
    const auto found = waiting_.find(number);
    if (found == waiting_.end()) return;
    found->second->answer = std::move(answer);
    found->second->over.set_from_anywhere();
    waiting_.erase(found);
  }

  // All that wait get nothing, at once.
  void give_up() {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, waiting] : waiting_) waiting->over.set_from_anywhere();
    waiting_.clear();
  }

 private:
  struct Waiting {
    explicit Waiting(const Executor& executor) : over(executor) {}
    Signal over;
    std::optional<std::string> answer;
  };

  std::uint64_t remember(const std::shared_ptr<Waiting>& waiting) {
    const std::lock_guard lock(mutex_);
    waiting_.emplace(++numbers_, waiting);
    return numbers_;
  }

  const Executor executor_;
  std::mutex mutex_;
  std::uint64_t numbers_ = 0;
  HashMap<std::uint64_t, std::shared_ptr<Waiting>> waiting_;
};

}  // namespace todoke::gossip

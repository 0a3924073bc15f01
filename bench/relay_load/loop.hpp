// The one thread that drives all connections of a case: writes what was queued, waits, hands out the replies.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/async.hpp"
#include "relay_load/connection.hpp"

namespace todoke::bench {

// Gets every message of every connection of a case.
class Receiver {
 public:
  virtual ~Receiver() = default;
  // True: the case came nearer to its end, and patience starts again.
  virtual bool on_message(std::size_t connection, std::string_view message) = 0;
};

// A case that cannot go on. Its text is what the report says.
class CaseFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Somebody pressed Ctrl-C, or sent SIGTERM.
class Interrupted : public std::runtime_error {
 public:
  Interrupted() : std::runtime_error("interrupted") {}
};
void interrupt_on_signals();

class Loop {
 public:
  // `offers_deflate`: for all its connections.
  explicit Loop(bool offers_deflate = false);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Connects (blocking) and gives the number of the connection, counted from 0.
  std::size_t connect(const std::string& url);
  void queue(std::size_t connection, std::string_view frames) { connections_[connection]->queue(frames); }

  static constexpr std::chrono::seconds kPatience{30};  // also said in texts
  static constexpr SteadyTime kNever = SteadyTime::max();

  // Turns until `done()`. Before each turn `step(now)` may queue something and says when it wants to be asked
  // again at the latest. Throws CaseFailed when nothing that counts has come for kPatience (`waiting()` says
  // in words for what), ConnectionEnded, or Interrupted.
  template <class Done, class Step, class Waiting>
  void run(Receiver& receiver, Done done, Step step, Waiting waiting) {
    progress_ = std::chrono::steady_clock::now();
    while (!done()) {
      const SteadyTime again = step(std::chrono::steady_clock::now());
      turn(receiver, std::min(again, progress_ + kPatience));
      if (std::chrono::steady_clock::now() - progress_ >= kPatience)
        throw CaseFailed("no answer within 30 s: " + waiting());
    }
  }

 private:
  void turn(Receiver& receiver, SteadyTime wake);
  void write_queued();
  void watch(std::size_t connection, bool output, bool is_new);

  const bool offers_deflate_;
  int epoll_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<bool> waits_for_output_;
  SteadyTime progress_;
};

}  // namespace todoke::bench

// The operator's program that decides over events (relay.policy_command): a child process that is asked
// before the writer (policy_protocol.hpp). Many questions are under way at once; the program may answer in
// any order.
//
//   session, gossip ──ask──▶ queue ──line──▶ program ──line──▶ told
//                              └── the timeout, or too many wait ──▶ told: failed
//
// Promise: every question is told once, on the executor. A program that ends is started again by the
// supervisor, with its backoff, and asked again what it has not answered. What it says of an event that
// nobody asks about any more is ignored. What becomes of an event without a decision is the caller's affair
// (`accepts_on_failure`).
//
// Bounded: kWaitingMax questions and kWaitingBytesMax of text wait; more fail at once. From kWaitingHigh on a
// caller is asked to pause, and told when half of that is left. A line of the program has kAnswerBytesMax. A
// program that lets kSilencesMax questions in a row time out is ended, and so started anew. An event costs 5
// us on top of the program's own time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/log_rate.hpp"
#include "base/metrics.hpp"
#include "base/service.hpp"
#include "relay/policy_program.hpp"
#include "relay/policy_queue.hpp"

namespace todoke::relay {

struct PolicySettings {
  std::vector<std::string> command;  // the program and its arguments; none: every event is taken
  std::chrono::milliseconds timeout{2'000};
  bool accepts_on_failure = false;
};

class Policy final : public Service {
 public:
  static constexpr std::size_t kWaitingHigh = 256;
  static constexpr std::size_t kWaitingMax = 1'024;
  static constexpr std::size_t kWaitingBytesMax = 16 * 1024 * 1024;
  static constexpr std::size_t kAnswerBytesMax = 64 * 1024;
  static constexpr std::size_t kSilencesMax = 10;

  using Tell = std::function<void(PolicyVerdict)>;

  Policy(const Executor& executor, PolicySettings settings, const Clock& clock, metrics::Registry& registry);

  // From anywhere.
  [[nodiscard]] bool is_on() const { return is_on_; }
  [[nodiscard]] bool accepts_on_failure() const { return accepts_on_failure_; }
  // From anywhere. False: the question is taken, but the caller should stop reading until `on_room` is called
  // (on the executor, once).
  bool ask(const EventPtr& event, const PolicySource& source, Tell tell,
           const std::function<void()>& on_room);
  // Another command ends the program, and starts the new one. On the executor.
  void set(PolicySettings settings);

  [[nodiscard]] std::string_view name() const override { return "policy"; }
  [[nodiscard]] bool essential() const override { return false; }
  Task<void> start() override { co_return; }
  Task<void> run() override;
  void stop() override;

 private:
  void take(PolicyQueue::Question question);
  void tell(PolicyQueue::Question question, PolicyVerdict verdict);
  void fail(std::vector<PolicyQueue::Question> questions);
  void hear(std::string_view line);
  void make_room();
  void wake_up();
  Task<void> run_program();
  Task<void> watch_time();

  Executor executor_;
  PolicySettings settings_;
  const Clock& clock_;
  metrics::Family<metrics::Counter>& decisions_;
  metrics::Histogram& seconds_;
  metrics::Gauge& waiting_gauge_;
  metrics::Counter& unreadable_;
  std::atomic<bool> is_on_;
  std::atomic<bool> accepts_on_failure_;
  std::atomic<std::chrono::milliseconds> timeout_;
  std::atomic<std::size_t> waiting_ = 0;  // asked and not told
  PolicyQueue queue_;
  std::vector<std::function<void()>> rooms_;
  std::size_t silences_ = 0;
  LogRate log_rate_;
  Signal asked_;    // a question, or changed_
  Signal changed_;  // the command is another one, the service stops, or the program has ended
  bool stop_asked_ = false;
  std::unique_ptr<PolicyProgram> program_;
};

}  // namespace todoke::relay

// What the cases that publish share: a receiver that leaves no reply unread, the account of which events are
// answered, and the two ways to send events in the course of a latency phase.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "relay_load/events.hpp"
#include "relay_load/loop.hpp"
#include "relay_load/result.hpp"
#include "relay_load/wire.hpp"

namespace todoke::bench {

// Sorts replies by type. What a case does not wait for becomes a problem in its result; a refused
// subscription ends the case.
class CaseReceiver : public Receiver {
 public:
  explicit CaseReceiver(CaseResult& result) : result_(result) {}
  bool on_message(std::size_t connection, std::string_view message) final;

 protected:
  virtual bool on_ok(std::size_t connection, const Reply& reply);
  virtual bool on_event(std::size_t connection, const Reply& reply);
  virtual bool on_eose(std::size_t connection, const Reply& reply);
  virtual bool on_closed(std::size_t connection, const Reply& reply);
  [[nodiscard]] CaseResult& result() { return result_; }

 private:
  bool unexpected(const Reply& reply);
  CaseResult& result_;
};

// Which events of a set have had their OK.
class Ledger {
 public:
  Ledger(const EventSet& events, CaseResult& result)
      : events_(events), result_(result), answers_(events.size(), Answer::none) {}

  // The event that an OK belongs to, when it is the first for it. A refusal, an event that the relay says it
  // had already, a second or a foreign OK are problems.
  std::optional<std::size_t> settle(const Reply& ok);

  [[nodiscard]] bool is_accepted(std::size_t i) const { return answers_[i] == Answer::accepted; }
  [[nodiscard]] bool is_refused(std::size_t i) const { return answers_[i] == Answer::refused; }
  [[nodiscard]] std::size_t settled() const { return accepted_ + refused_; }
  [[nodiscard]] std::size_t accepted() const { return accepted_; }
  // Throws CaseFailed when nothing was accepted: there is nothing to measure then.
  void require_some() const;

 private:
  enum class Answer : std::uint8_t { none, accepted, refused };
  const EventSet& events_;
  CaseResult& result_;
  std::vector<Answer> answers_;
  std::size_t accepted_ = 0;
  std::size_t refused_ = 0;
};

inline constexpr std::chrono::milliseconds kGap{10};

// When each event of a latency phase is sent, and since when its latency counts.
class Schedule {
 public:
  // Open loop: `rate` events/s whatever the relay does. Latencies count from the time at which an event was
  // due, so what a slow relay does to the events behind is not left out.
  static Schedule at_rate(std::size_t rate) { return Schedule(rate); }
  // The next event some milliseconds after the one before was `settled`. The pauses differ, so as not to fall
  // into step with a timer of the relay. Latencies count from the sending.
  static Schedule one_at_a_time() { return Schedule(0); }
  // The same with kGap between them.
  static Schedule with_gaps() {
    Schedule schedule(0);
    schedule.gap_ = kGap;
    return schedule;
  }

  // Sends what is due of `events` on a connection, and says when to come again.
  SteadyTime step(SteadyTime now, Loop& loop, std::size_t connection, const EventSet& events);
  // For one at a time: the event sent last has had all its answers.
  void settled();
  [[nodiscard]] SteadyTime since(std::size_t i) const { return since_[i]; }
  [[nodiscard]] std::size_t sent() const { return since_.size(); }
  // By how much the client itself was behind the schedule.
  [[nodiscard]] Latencies& late() { return late_; }

 private:
  explicit Schedule(std::size_t rate) : rate_(rate) {}

  std::size_t rate_;  // 0: one at a time
  std::optional<std::chrono::milliseconds> gap_;
  std::vector<SteadyTime> since_;
  SteadyTime began_{};
  SteadyTime next_{};
  Latencies late_;
};

}  // namespace todoke::bench

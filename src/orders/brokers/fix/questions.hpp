// Answers what `todoke orders reconcile` asks of a FIX broker (fix_book.hpp is the other side). A session has
// one owner, so a command can't log on beside it: it writes its questions in orders.fix_questions, and the
// worker that has the session sends an OrderStatusRequest for each and writes down what the broker says.
//
// Orders come first: few questions are under way at a time, and no more leave in a second than the settings
// allow. A broker that does not answer is asked a few times only. Questions outlive their owner: the next one
// goes on with them. What nobody takes away is swept.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/loops.hpp"
#include "base/metrics.hpp"
#include "base/service.hpp"
#include "orders/brokers/fix/adapter.hpp"
#include "pg/listener.hpp"
#include "pg/pool.hpp"

namespace todoke::orders {

struct FixQuestionsParts {
  Executor executor;
  const Clock& clock;
  pg::Pool& pool;
  pg::Listener& listener;
  metrics::Registry& metrics;
  std::chrono::milliseconds broker_timeout{2'500};
};

// When each of many may go, so that no more than `per_sec` do in a second. Pure.
class FixPace {
 public:
  explicit FixPace(int per_sec) : between_(std::chrono::nanoseconds(std::chrono::seconds(1)) / per_sec) {}
  // The turn of one more that asks now.
  SteadyTime take(SteadyTime now) {
    const auto turn = std::max(next_, now);
    next_ = turn + std::chrono::duration_cast<SteadyTime::duration>(between_);
    return turn;
  }

 private:
  std::chrono::nanoseconds between_;
  SteadyTime next_{};
};

class FixQuestions final : public Service {
 public:
  static constexpr std::size_t kUnderWayMax = 4;
  // Read at once: few, so that two commands take turns.
  static constexpr std::size_t kPageMax = 16;
  // After that many in a row without an answer the rest is told so at once.
  static constexpr std::size_t kSilentMax = 8;
  // Longer than a command waits for its questions, with the lowest rate and some others beside it.
  static constexpr std::chrono::seconds kKeep{600};
  // Notifications wake it; this is for a session that was taken over, and for sweeping.
  static constexpr std::chrono::milliseconds kLookEvery{2'000};
  static constexpr std::chrono::milliseconds kStatementMax{5'000};

  FixQuestions(std::shared_ptr<FixLink> link, const FixQuestionsParts& parts);

  [[nodiscard]] std::string_view name() const override { return "fix questions"; }
  [[nodiscard]] bool essential() const override { return false; }
  Task<void> start() override;
  // Ends within the broker's time and two statements after stop().
  Task<void> run() override;
  void stop() override;

 private:
  // Of one order; several commands may ask about it.
  struct Question {
    std::vector<std::int64_t> ids;
    std::int64_t outbox_id = 0;
    std::string cl_ord_id;
    std::string document;
  };

  // True: there were questions.
  Task<bool> look();
  Task<std::vector<Question>> read_page();
  Task<void> answer_page();
  Task<FindOutcome> outcome_of(const Question& question);
  Task<FindOutcome> ask(const Question& question);
  Task<void> write(const Question& question, const FindOutcome& outcome);
  Task<void> wait_for_turn();
  [[nodiscard]] bool may_ask() const { return !stop_asked_.is_set() && link_->has_session(); }

  std::shared_ptr<FixLink> link_;
  FixAdapter adapter_;
  Executor executor_;
  const Clock& clock_;
  pg::Pool& pool_;
  pg::Listener& listener_;
  std::chrono::milliseconds broker_timeout_;
  FixPace pace_;

  std::vector<Question> page_;
  std::size_t next_ = 0;
  std::size_t silent_ = 0;  // without an answer, in a row
  Loops lanes_;             // of the page; when one dies the others end with the question that they have
  Signal wake_;
  Signal stop_asked_;
  pg::Listener::Subscription subscription_;

  metrics::Counter& found_;
  metrics::Counter& not_found_;
  metrics::Counter& unknown_;
  metrics::Counter& swept_;
};

}  // namespace todoke::orders

// Asks the broker, on the session that this process has, about orders of which it may know more than we do:
// those in doubt, and those that it works on. Asks about all of them after each logon and each reset of the
// numbers, because reports may have been lost; then about each again after `ask_every`, and before that where
// the broker gave no answer in time (`repeats`). FixLink stores the answer like a report, so it settles an
// order in doubt and adds fills to one that works, and `todoke orders reconcile` reads it (book.hpp).
//
// Orders have precedence: the watch has few questions under way at a time, sends no more of them in a second
// than the settings allow, and begins with the order whose last question is the oldest. It leaves a broker
// that does not answer alone for a while (FixSilence). Ends within the broker's time and a statement after
// stop().
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "base/loops.hpp"
#include "base/metrics.hpp"
#include "base/periodic.hpp"
#include "orders/brokers/fix/adapter.hpp"
#include "orders/brokers/fix/questions.hpp"
#include "pg/pool.hpp"

namespace todoke::orders {

struct FixWatchParts {
  Executor executor;
  const Clock& clock;
  pg::Pool& pool;
  metrics::Registry& metrics;
  std::chrono::milliseconds broker_timeout{2'500};
  // Fills come by themselves; this finds those that were lost. 6,000 orders are asked about in it at 20 a
  // second.
  std::chrono::milliseconds ask_every{300'000};
  // An answer that was lost is there two seconds later; a broker that was busy for a minute is not asked all
  // the time.
  FixPauses repeats{std::chrono::milliseconds(2'000), std::chrono::milliseconds(60'000)};
};

class FixWatch final : public PeriodicService {
 public:
  static constexpr std::size_t kUnderWayMax = 4;
  // Read with one statement. At 20 questions a second the last of them is asked a quarter of a minute
  // later.
  static constexpr std::size_t kPageMax = 256;
  static constexpr std::chrono::milliseconds kLookEvery{1'000};
  static constexpr std::chrono::milliseconds kStatementMax{5'000};

  FixWatch(std::shared_ptr<FixLink> link, const FixWatchParts& parts);

  [[nodiscard]] bool essential() const override { return false; }

 private:
  Task<void> round(RoundCause cause) override;
  // Asks about one page of orders. True: there may be more.
  Task<bool> ask_some();
  // Marks every order that it reads as asked about, and stops watching those that need no question any more.
  Task<std::vector<WatchedOrder>> read_page(bool& is_full);
  Task<void> ask_page();
  Task<void> ask(const WatchedOrder& order);
  void note_silence(const WatchedOrder& order);
  Task<void> wait_for_turn();
  [[nodiscard]] bool may_ask() const;
  [[nodiscard]] double asked_before_seconds() const;

  std::shared_ptr<FixLink> link_;
  FixAdapter adapter_;
  const Clock& clock_;
  pg::Pool& pool_;
  std::chrono::milliseconds broker_timeout_;
  std::chrono::milliseconds ask_every_;
  FixPace pace_;
  FixUnanswered unanswered_;
  FixSilence silence_;
  SteadyTime speaks_since_{};  // of the session whose silence that is

  std::vector<WatchedOrder> page_;
  std::size_t next_ = 0;
  Loops lanes_;  // of the page; when one dies the others end with the question that they have

  metrics::Counter& found_;
  metrics::Counter& not_found_;
  metrics::Counter& unknown_;
};

}  // namespace todoke::orders

// Asks the broker, on the session that this process has, about orders of which it may know more than we do:
// those in doubt, and those that it works on. Asks about all of them after each logon and each reset of the
// numbers, because reports may have been lost; then about each again after `ask_every`, or already after
// `ask_again` where the broker gave no answer in time. FixLink stores the answer like a report, so it settles
// an order in doubt and adds fills to one that works, and `todoke orders reconcile` reads it (book.hpp).
//
// Orders have precedence: the watch has few questions under way at a time, sends no more of them in a second
// than the settings allow, and begins with the order whose last question is the oldest. It leaves a broker
// that does not answer alone for `ask_again`. Ends within the broker's time and a statement after stop().
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/loops.hpp"
#include "base/metrics.hpp"
#include "base/periodic.hpp"
#include "orders/brokers/fix/adapter.hpp"
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
  // A lost answer or a broker that was busy; 8 questions in half a minute cost a broker that is down nothing.
  std::chrono::milliseconds ask_again{30'000};
};

// Gives each of many callers its moment, `per_sec` of them in a second. Pure.
class FixPace {
 public:
  explicit FixPace(int per_sec) : between_(std::chrono::nanoseconds(std::chrono::seconds(1)) / per_sec) {}
  // The moment of the caller that asks now.
  SteadyTime next_turn(SteadyTime now) {
    const auto turn = std::max(next_, now);
    next_ = turn + std::chrono::duration_cast<SteadyTime::duration>(between_);
    return turn;
  }

 private:
  std::chrono::nanoseconds between_;
  SteadyTime next_{};
};

class FixWatch final : public PeriodicService {
 public:
  static constexpr std::size_t kUnderWayMax = 4;
  // Read with one statement. At 20 questions a second the last of them is asked a quarter of a minute
  // later.
  static constexpr std::size_t kPageMax = 256;
  // After that many questions in a row without an answer the watch rests for `ask_again`.
  static constexpr std::size_t kSilentMax = 8;
  static constexpr std::chrono::milliseconds kLookEvery{1'000};
  static constexpr std::chrono::milliseconds kStatementMax{5'000};

  FixWatch(std::shared_ptr<FixLink> link, const FixWatchParts& parts);

  [[nodiscard]] bool essential() const override { return false; }

 private:
  struct Watched {
    std::int64_t outbox_id = 0;
    std::string cl_ord_id;
    std::string document;
  };
  struct Unanswered {
    Watched order;
    SteadyTime ask_at{};
    SteadyTime until{};  // then its turn comes with the others, where it is still watched
  };

  Task<void> round(RoundCause cause) override;
  // Asks about one page of orders. True: there may be more.
  Task<bool> ask_some();
  // Questions that got no answer and whose time has come, a page at most.
  std::vector<Watched> unanswered_now();
  // Marks every order that it reads as asked about, and stops watching those that need no question any more.
  Task<std::vector<Watched>> read_page(bool& is_full);
  Task<void> ask_page();
  Task<void> ask(const Watched& order);
  void ask_again(const Watched& order);
  Task<void> wait_for_turn();
  [[nodiscard]] bool may_ask() const;
  [[nodiscard]] double asked_before_seconds() const;

  std::shared_ptr<FixLink> link_;
  FixAdapter adapter_;
  const Clock& clock_;
  pg::Pool& pool_;
  std::chrono::milliseconds broker_timeout_;
  std::chrono::milliseconds ask_every_;
  std::chrono::milliseconds ask_again_;
  FixPace pace_;

  std::vector<Watched> page_;
  std::size_t next_ = 0;
  std::map<std::int64_t, Unanswered> unanswered_;  // by outbox_id; kPageMax, the others wait for ask_every
  std::size_t silent_ = 0;                         // without an answer, in a row
  bool is_silence_told_ = false;
  SteadyTime silent_until_{};  // a broker that does not answer is left alone until then
  Loops lanes_;                // of the page; when one dies the others end with the question that they have

  metrics::Counter& found_;
  metrics::Counter& not_found_;
  metrics::Counter& unknown_;
};

}  // namespace todoke::orders

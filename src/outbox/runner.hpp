// Runs a consumer: one instance at a time for a name, wherever it runs. It holds the name by a lease in the
// database; an instance that finds the lease lapsed takes the name over with a higher epoch, and the one that
// lost it can't commit any more.
//
// Woken by NOTIFY and in process, and looks by itself at least twice a second. Sees an offset that somebody
// moved, up or down, within a second.
//
// Halves a batch that fails (base/halving.hpp), as the group committer does. It is no group committer itself:
// nothing is queued in the process and nobody waits for an answer, since the log keeps the rows and the
// offset says where to go on; so there is neither a queue to bound nor a patience to keep.
//
// Bounded: rows of a batch (adaptive), tries for a row, time of a batch. A call of the consumer that does not
// even end some seconds after its deadline loses its connection, and the name is left to another instance.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/backoff.hpp"
#include "base/halving.hpp"
#include "base/hash_table.hpp"
#include "base/loops.hpp"
#include "base/service.hpp"
#include "outbox/consumer.hpp"
#include "outbox/log_signal.hpp"
#include "pg/listener.hpp"
#include "pg/pool.hpp"

namespace todoke::outbox {

struct RunnerOptions {
  std::chrono::milliseconds lease{10'000};
  std::chrono::milliseconds poll_every{500};
  std::chrono::milliseconds batch_max{60'000};  // for one call of the consumer
  std::size_t rows_min = 16;
  std::size_t rows_max = 5'000;
  std::chrono::milliseconds batch_aim{200};  // a batch that takes longer is halved, one much shorter doubled
  int tries_max = 5;                         // for a row, before it is buried
  // While the writer is busy, rows younger than this wait: a burst is stored first and consumed after it. 0:
  // never.
  std::chrono::milliseconds defer_max{0};
  std::chrono::milliseconds retry_first{50};
  std::chrono::milliseconds retry_most{5'000};
};

class Runner final : public Service {
 public:
  Runner(const Executor& executor, std::shared_ptr<Consumer> consumer, RunnerOptions options, pg::Pool& pool,
         pg::Listener& listener, LogSignal& log, const Clock& clock, metrics::Registry& registry);
  ~Runner() override;

  [[nodiscard]] std::string_view name() const override { return service_name_; }
  [[nodiscard]] bool essential() const override { return false; }
  Task<void> start() override;
  Task<void> run() override;
  void stop() override;

 private:
  // The name, as long as it is ours.
  struct Held {
    std::int64_t epoch;
    Seq last;
  };
  // Somebody else holds the name now, or has moved the offset.
  struct Fenced : std::runtime_error {
    Fenced() : std::runtime_error("the offset was moved, or another instance has taken over") {}
  };
  enum class Next { more, wait };
  // Of the row that fails by itself.
  struct Tries {
    int count;
    Backoff backoff;
    void begin_anew() {
      count = 0;
      backoff.reset();
    }
  };
  // A call of the consumer that is under way.
  class Applying;

  Task<void> hold_and_follow();
  Task<void> follow(Held& held);
  // Waits until the time is over or stop is asked for, whatever moves in the log: an instance that can't go
  // on would otherwise ask for the name again at every commit.
  Task<void> rest(std::chrono::milliseconds time);
  Task<std::optional<Held>> take_lease();
  Task<void> give_back(Held held);
  // Renews the lease every third of it as long as it is that one which is held.
  Task<void> keep_lease(Held held);
  Task<void> renew_lease(Held held);
  // The call of the consumer hangs: its locks go with its connection, and the lease lapses.
  void give_up_hanging();
  Task<Next> step(Held& held);
  // All of them: in one batch, in parts, or buried.
  Task<void> apply(Held& held, std::vector<LogRow> rows);
  Task<void> apply_timed(Held& held, std::span<const LogRow> rows, Tries& tries);
  Task<AfterFailure> judge(Held& held, std::exception_ptr failure, std::span<const LogRow> part,
                           Tries& tries);
  Task<void> apply_once(Held& held, std::span<const LogRow> rows);
  Task<std::int64_t> apply_effects(pg::Connection& connection, std::span<const LogRow> rows,
                                   Deadline deadline);
  Task<void> retry_letter(const Held& held, const pg::Result& letter);
  Task<void> apply_letter(const Held& held, const pg::Result& letter);
  Task<void> advance(pg::Connection& connection, Held& held, std::span<const LogRow> rows,
                     std::int64_t purged, Deadline deadline);
  Task<void> bury(Held& held, const LogRow& row, std::string error);
  void start_rebuild(Held held);
  Task<void> rebuild(Held held);
  Task<void> end_rebuild(Held held, Seq head);
  Task<void> note_progress(pg::Connection& connection, Held held, std::int64_t done, std::int64_t total);
  void adapt(std::chrono::nanoseconds took, std::size_t rows);

  Executor executor_;
  std::shared_ptr<Consumer> consumer_;
  const std::string service_name_;
  const std::string owner_;
  RunnerOptions options_;
  pg::Pool& pool_;
  pg::Listener& listener_;
  LogSignal& log_;
  const Clock& clock_;
  metrics::Counter& rows_;             // todoke_consumer_rows_total{consumer}
  metrics::Counter& dead_letters_;     // todoke_consumer_dead_letters_total{consumer}
  metrics::Counter& purged_;           // todoke_consumer_purged_rows_total{consumer}
  metrics::Counter& retries_;          // todoke_consumer_retries_total{consumer}
  metrics::Histogram& batch_seconds_;  // todoke_consumer_batch_seconds
  std::size_t batch_rows_;
  std::int64_t held_epoch_ = 0;  // 0: the name is not ours
  bool went_on_ = false;         // since the last failure
  Applying* applying_ = nullptr;
  bool rebuilding_ = false;  // a rebuild is under way
  Backoff rebuild_backoff_;
  SteadyTime rebuild_again_at_{};
  Signal wake_;
  Signal rebuild_ended_;
  Loops lease_loop_;  // when it dies nothing more is applied under that lease
  bool stop_asked_ = false;
  pg::Listener::Subscription subscription_;
  LogSignal::Subscription local_;
};

}  // namespace todoke::outbox

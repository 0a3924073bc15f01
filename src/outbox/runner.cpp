#include "outbox/runner.hpp"

#include <algorithm>
#include <array>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/attempt.hpp"
#include "base/bytes.hpp"
#include "base/log.hpp"
#include "outbox/failure.hpp"
#include "outbox/outbox_sql.hpp"
#include "pg/channels.hpp"
#include "pg/error.hpp"
#include "pg/transaction.hpp"

namespace todoke::outbox {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kDeferStep(200);
constexpr std::chrono::milliseconds kSmallWorkMax = 10s;
// How far beyond its deadline a call of the consumer may go before it counts as hanging. Calls of the
// database end within two seconds after theirs.
constexpr std::chrono::milliseconds kHangAfter = 3s;
constexpr std::size_t kOwnerRandomBytes = 4;

std::string owner_name() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return fmt::format("{}:{}:{}", host.data(), getpid(), random_hex(kOwnerRandomBytes));
}

}  // namespace

Runner::Runner(const Executor& executor, std::shared_ptr<Consumer> consumer, RunnerOptions options,
               pg::Pool& pool, pg::Listener& listener, LogSignal& log, const Clock& clock,
               metrics::Registry& registry)
    : executor_(executor),
      consumer_(std::move(consumer)),
      service_name_(fmt::format("consumer {}", consumer_->name())),
      owner_(owner_name()),
      options_(options),
      pool_(pool),
      listener_(listener),
      log_(log),
      clock_(clock),
      rows_(
          registry.counters("todoke_consumer_rows_total", "Rows of the log that were consumed.", {"consumer"})
              .with({std::string(consumer_->name())})),
      dead_letters_(registry
                        .counters("todoke_consumer_dead_letters_total",
                                  "Rows that kept failing and were buried.", {"consumer"})
                        .with({std::string(consumer_->name())})),
      purged_(registry
                  .counters("todoke_consumer_purged_rows_total",
                            "Rows that were passed over because their event had been purged.", {"consumer"})
                  .with({std::string(consumer_->name())})),
      retries_(
          registry
              .counters("todoke_consumer_retries_total", "Batches that had to be tried again.", {"consumer"})
              .with({std::string(consumer_->name())})),
      batch_seconds_(registry.histogram("todoke_consumer_batch_seconds", "Effects and offset of a batch.",
                                        metrics::seconds_buckets())),
      batch_rows_(options.rows_min),
      rebuild_backoff_(options.retry_first, options.retry_most),
      wake_(executor),
      rebuild_ended_(executor),
      lease_loop_(executor, service_name_, [this] {
        held_epoch_ = 0;
        wake_.set();
      }) {}

Runner::~Runner() = default;

class Runner::Applying {
 public:
  Applying(Runner& runner, pg::Connection& connection, std::chrono::nanoseconds limit)
      : runner_(runner), connection_(connection), hangs_after_(Deadline::after(limit + kHangAfter)) {
    runner_.applying_ = this;
  }
  ~Applying() { runner_.applying_ = nullptr; }
  Applying(const Applying&) = delete;
  Applying& operator=(const Applying&) = delete;

  [[nodiscard]] bool hangs() const { return hangs_after_.passed(); }
  // True: just now. A statement that is under way ends by its own deadline.
  bool cut() {
    if (!connection_.usable()) return false;
    connection_.close();
    return true;
  }

 private:
  Runner& runner_;
  pg::Connection& connection_;
  Deadline hangs_after_;
};

Task<void> Runner::start() {
  const auto deadline = Deadline::after(kSmallWorkMax);
  const auto lease = co_await pool_.acquire(deadline);
  pg::Params params(consumer_->name(), consumer_->mandatory());
  co_await lease->query(sql::kAddConsumer, std::move(params), deadline);
  subscription_ =
      listener_.subscribe(pg::channels::kLog, [this](const pg::Wake&) { wake_.set_from_anywhere(); });
  local_ = log_.subscribe([this] { wake_.set_from_anywhere(); });
}

void Runner::stop() {
  stop_asked_ = true;
  wake_.set();
}

Task<void> Runner::run() {
  Backoff backoff(options_.retry_first, options_.retry_most);
  while (!stop_asked_) {
    const auto followed = co_await attempt(hold_and_follow());
    held_epoch_ = 0;
    if (std::exchange(went_on_, false)) backoff.reset();
    if (!followed) {
      log::warning("consumer", "interrupted, going on soon",
                   {{"consumer", consumer_->name()}, {"error", describe(followed.error())}});
    }
    if (stop_asked_) break;
    co_await rest(followed ? options_.poll_every : backoff.next());
  }
  subscription_ = {};
  local_ = {};
  while (rebuilding_) {
    rebuild_ended_.reset();
    co_await rebuild_ended_.wait();
  }
}

Task<void> Runner::rest(std::chrono::milliseconds time) {
  const auto over = Deadline::after(time);
  while (!stop_asked_ && !over.passed()) {
    wake_.reset();
    co_await wake_.wait_for(over.left());
  }
}

// Returns when the name is somebody else's, or at stop.
Task<void> Runner::hold_and_follow() {
  auto held = co_await take_lease();
  if (!held) co_return;
  log::info("consumer", "following the log",
            {{"consumer", consumer_->name()}, {"epoch", held->epoch}, {"seq", held->last.value}});
  held_epoch_ = held->epoch;
  lease_loop_.launch("lease", keep_lease(*held));
  const auto followed = co_await attempt(follow(*held));
  held_epoch_ = 0;
  co_await lease_loop_.join();
  // One that was fenced reads the offset anew in the next round.
  if (!followed && !is_a<Fenced>(followed.error())) std::rethrow_exception(followed.error());
  co_await give_back(*held);
}

Task<void> Runner::follow(Held& held) {
  const auto epoch = held.epoch;
  while (!stop_asked_ && held_epoch_ == epoch) {
    wake_.reset();
    const auto next = co_await step(held);
    went_on_ = true;
    if (next == Next::wait && !stop_asked_) co_await wake_.wait_for(options_.poll_every);
  }
}

Task<std::optional<Runner::Held>> Runner::take_lease() {
  const auto deadline = Deadline::after(kSmallWorkMax);
  const auto lease = co_await pool_.acquire(deadline);
  pg::Batch batch;
  batch.add(sql::kAddConsumer,
            pg::Params(consumer_->name(), consumer_->mandatory()));  // somebody may have deleted it
  batch.add(sql::kTakeLease, pg::Params(consumer_->name(), owner_, seconds_in(options_.lease)));
  const auto results = co_await lease->run(std::move(batch), deadline);
  if (results[1].empty()) co_return std::nullopt;
  const auto taken = results[1].one();
  co_return Held{taken.get<std::int64_t>(0), Seq{taken.get<std::int64_t>(1)}};
}

Task<void> Runner::give_back(Held held) {
  const auto deadline = Deadline::after(kSmallWorkMax);
  const auto lease = co_await pool_.acquire(deadline);
  pg::Params params(consumer_->name(), held.epoch);
  co_await lease->query(sql::kGiveLeaseBack, std::move(params), deadline);
}

Task<void> Runner::keep_lease(Held held) {
  auto renew_at = clock_.steady() + options_.lease / 3;
  while (held_epoch_ == held.epoch) {
    co_await sleep_for(std::min<std::chrono::milliseconds>(options_.lease / 10, 250ms));
    if (applying_ != nullptr && applying_->hangs()) {
      give_up_hanging();
      continue;
    }
    if (held_epoch_ != held.epoch || clock_.steady() < renew_at) continue;
    renew_at = clock_.steady() + options_.lease / 3;
    const auto renewed = co_await attempt(renew_lease(held));
    // The lease may lapse then, and the epoch keeps us from committing.
    if (!renewed) {
      log::warning("consumer", "the lease was not renewed",
                   {{"consumer", consumer_->name()}, {"error", describe(renewed.error())}});
    }
  }
}

Task<void> Runner::renew_lease(Held held) {
  const auto deadline = Deadline::after(options_.lease / 3);
  const auto lease = co_await pool_.acquire(deadline);
  pg::Params params(consumer_->name(), held.epoch, seconds_in(options_.lease));
  const auto rows = co_await lease->query(sql::kRenewLease, std::move(params), deadline);
  if (rows.empty() && held_epoch_ == held.epoch) held_epoch_ = 0;
}

void Runner::give_up_hanging() {
  if (!applying_->cut()) return;
  log::error("consumer", "hangs beyond its deadline; its connection was cut, another instance may take over",
             {{"consumer", consumer_->name()}});
}

Task<Runner::Next> Runner::step(Held& held) {
  const auto deadline = Deadline::after(kSmallWorkMax);
  std::vector<LogRow> rows;
  std::optional<pg::Result> letter;
  {
    const auto lease = co_await pool_.acquire(deadline);
    pg::Batch batch(pg::Batch::Mode::plain);
    batch.add(sql::kConsumerState, pg::Params(consumer_->name()));
    batch.add(sql::kReadLog, pg::Params(held.last.value, static_cast<std::int64_t>(batch_rows_)));
    batch.add(sql::kLetterToRetry, pg::Params(consumer_->name()));
    const auto results = co_await lease->run(std::move(batch), deadline);
    if (results[0].empty()) throw Fenced();
    const auto state = results[0].one();
    if (state.get<std::int64_t>(3) != held.epoch) throw Fenced();
    const Seq last{state.get<std::int64_t>(0)};
    if (last != held.last) {
      log::info("consumer", "the offset was moved",
                {{"consumer", consumer_->name()}, {"from", held.last.value}, {"to", last.value}});
      held.last = last;
      co_return Next::more;
    }
    const auto condition = state.get<std::string>(2);
    if (condition == "rebuilding" && !rebuilding_ && clock_.steady() >= rebuild_again_at_)
      start_rebuild(held);
    if (state.get<bool>(1) || condition == "needs_rebuild") co_return Next::wait;
    rows = read_rows(results[1]);
    if (!results[2].empty()) letter = results[2];
  }
  if (letter) {
    co_await retry_letter(held, *letter);
    co_return Next::more;
  }
  if (rows.empty()) co_return Next::wait;
  const auto age = clock_.now() - rows.front().ingested_at;  // negative after the clock was set back
  if (log_.is_busy() && age.count() >= 0 && age < options_.defer_max) {
    co_await sleep_for(kDeferStep);
    co_return Next::more;
  }
  co_await apply(held, std::move(rows));
  co_return Next::more;
}

Task<void> Runner::apply(Held& held, std::vector<LogRow> rows) {
  Tries tries{0, Backoff(options_.retry_first, options_.retry_most)};
  co_await in_halves(
      std::span<const LogRow>(rows),
      [&](std::span<const LogRow> part) { return apply_timed(held, part, tries); },
      [&](std::exception_ptr failure, std::span<const LogRow> part) {
        return judge(held, std::move(failure), part, tries);
      });
}

Task<void> Runner::apply_timed(Held& held, std::span<const LogRow> rows, Tries& tries) {
  const auto began = clock_.steady();
  co_await apply_once(held, rows);
  adapt(clock_.steady() - began, rows.size());
  tries.begin_anew();
}

// A row that keeps failing by itself is buried.
Task<AfterFailure> Runner::judge(Held& held, std::exception_ptr failure, std::span<const LogRow> part,
                                 Tries& tries) {
  if (is_a<Fenced>(failure) || is_about_everything(failure) || stop_asked_) std::rethrow_exception(failure);
  retries_.add();
  if (part.size() > 1) co_return AfterFailure::halve;
  if (++tries.count < options_.tries_max) {
    co_await sleep_for(tries.backoff.next());
    co_return AfterFailure::again;
  }
  co_await bury(held, part.front(), failure_text(failure));
  tries.begin_anew();
  co_return AfterFailure::drop;
}

// The effects of rows whose events are still there; gives the number of the others.
Task<std::int64_t> Runner::apply_effects(pg::Connection& connection, std::span<const LogRow> rows,
                                         Deadline deadline) {
  HashMap<std::string, LoggedEvent> events;
  std::vector<LogRow> present;
  auto wanted = rows;
  if (consumer_->wants_events()) {
    events = co_await load_events(connection, rows, deadline);
    for (const auto& row : rows) {
      if (row.op == Op::erase || events.contains(row.event_id)) present.push_back(row);
    }
    wanted = present;
  }
  if (!wanted.empty()) {
    const Work work{connection, consumer_->name(), wanted, events, deadline};
    co_await consumer_->apply(work);
  }
  co_return static_cast<std::int64_t>(rows.size() - wanted.size());
}

Task<void> Runner::apply_once(Held& held, std::span<const LogRow> rows) {
  const auto deadline = Deadline::after(options_.batch_max);
  const auto lease = co_await pool_.acquire(deadline);
  const Applying applying(*this, *lease, options_.batch_max);
  auto transaction = co_await pg::begin(*lease, deadline);
  const auto purged = co_await apply_effects(*lease, rows, deadline);
  co_await advance(*lease, held, rows, purged, deadline);
  co_await transaction.commit(deadline);
  held.last = rows.back().seq;
  rows_.add(rows.size());
  purged_.add(static_cast<std::uint64_t>(purged));
}

Task<void> Runner::advance(pg::Connection& connection, Held& held, std::span<const LogRow> rows,
                           std::int64_t purged, Deadline deadline) {
  const auto to = rows.back().seq.value;
  const auto digest = digest_of(rows);
  pg::Batch batch(pg::Batch::Mode::plain);
  batch.add(sql::kAdvance, pg::Params(consumer_->name(), held.epoch, held.last.value, to,
                                      seconds_in(options_.lease), purged));
  batch.add(sql::kRecordRange, pg::Params(consumer_->name(), held.last.value, to, digest.count,
                                          static_cast<std::int64_t>(digest.hash)));
  const auto results = co_await connection.run(std::move(batch), deadline);
  if (results[0].empty()) throw Fenced();
}

Task<void> Runner::bury(Held& held, const LogRow& row, std::string error) {
  log::error("consumer", "a row was buried",
             {{"consumer", consumer_->name()}, {"seq", row.seq.value}, {"error", error}});
  const auto deadline = Deadline::after(kSmallWorkMax);
  const auto lease = co_await pool_.acquire(deadline);
  auto transaction = co_await pg::begin(*lease, deadline);
  const std::span<const LogRow> one(&row, 1);
  co_await advance(*lease, held, one, 0, deadline);
  pg::Params params(consumer_->name(), row.seq.value, to_string(row.op), row.event_id, row.topic_id, error,
                    static_cast<std::int32_t>(options_.tries_max), row.ingested_at);
  const auto buried = co_await lease->query(sql::kBury, std::move(params), deadline);
  co_await transaction.commit(deadline);
  held.last = row.seq;
  rows_.add();
  if (buried.affected() > 0) dead_letters_.add();
}

Task<void> Runner::retry_letter(const Held& held, const pg::Result& letter) {
  const auto seq = letter.one().get<std::int64_t>(9);
  const auto applied = co_await attempt(apply_letter(held, letter));
  if (applied) {
    log::info("consumer",
              letter.one().is_null(0) ? "a buried row is no longer in the log" : "a buried row was applied",
              {{"consumer", consumer_->name()}, {"seq", seq}});
    co_return;
  }
  const auto& failure = applied.error();
  if (is_a<Fenced>(failure) || is_about_everything(failure)) std::rethrow_exception(failure);
  // A deadline of its own: the row may have used up the other one.
  const auto deadline = Deadline::after(kSmallWorkMax);
  const auto lease = co_await pool_.acquire(deadline);
  pg::Params params(consumer_->name(), seq, failure_text(failure));
  co_await lease->query(sql::kRebury, std::move(params), deadline);
}

Task<void> Runner::apply_letter(const Held& held, const pg::Result& letter) {
  const auto deadline = Deadline::after(options_.batch_max);
  const auto lease = co_await pool_.acquire(deadline);
  const Applying applying(*this, *lease, options_.batch_max);
  auto transaction = co_await pg::begin(*lease, deadline);
  if (!letter.one().is_null(0)) {
    const auto row = read_rows(letter);
    co_await apply_effects(*lease, row, deadline);
  }
  pg::Params params(consumer_->name(), held.epoch, letter.one().get<std::int64_t>(9));
  const auto unburied = co_await lease->query(sql::kUnbury, std::move(params), deadline);
  if (unburied.empty()) throw Fenced();
  co_await transaction.commit(deadline);
}

void Runner::adapt(std::chrono::nanoseconds took, std::size_t rows) {
  batch_seconds_.observe(std::chrono::duration<double>(took).count());
  if (took > options_.batch_aim) {
    batch_rows_ = std::max(options_.rows_min, batch_rows_ / 2);
  } else if (rows == batch_rows_ && took * 2 < options_.batch_aim) {
    batch_rows_ = std::min(options_.rows_max, batch_rows_ * 2);
  }
}

}  // namespace todoke::outbox

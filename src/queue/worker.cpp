#include "queue/worker.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "base/attempt.hpp"
#include "base/log.hpp"

namespace todoke::queue {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kRetryFirst = 50ms;
constexpr std::chrono::milliseconds kRetryMost = 2s;
// A claim that found little although it took longer than this, and that passes rows over, such as those of a
// halted instrument, is not repeated before ten times as long has passed.
constexpr std::chrono::milliseconds kSlowClaim = 10ms;
constexpr int kRestFactor = 9;
constexpr std::chrono::milliseconds kRestMost = 2s;
// More than any worker needs; bounds the cost of a wrong setting.
constexpr std::size_t kLanesMax = 4'096;

int level(Breaker::State state) {
  switch (state) {
    case Breaker::State::closed:
      return 0;
    case Breaker::State::ramping:
      return 1;
    case Breaker::State::probing:
      return 2;
    case Breaker::State::open:
      return 3;
  }
  return 0;
}

// Whether a loop returns or dies.
class AtEnd {
 public:
  explicit AtEnd(std::function<void()> what) : what_(std::move(what)) {}
  ~AtEnd() { what_(); }
  AtEnd(const AtEnd&) = delete;
  AtEnd& operator=(const AtEnd&) = delete;

 private:
  std::function<void()> what_;
};

}  // namespace

class Worker::JobHold final : public Hold {
 public:
  JobHold(const Worker& worker, const Job& job) : worker_(worker), job_(job) {}
  [[nodiscard]] bool allows(std::chrono::milliseconds needed) const override {
    return !worker_.stopping_ && worker_.lease_.allows(job_.leased_from, worker_.clock_.steady(), needed);
  }

 private:
  const Worker& worker_;
  const Job& job_;
};

Worker::Worker(Executor executor, WorkerOptions options, Port& port, Handler& handler, const Clock& clock,
               WorkerMetrics metrics)
    : executor_(std::move(executor)),
      options_(std::move(options)),
      lease_(options_.lease),
      port_(port),
      handler_(handler),
      clock_(clock),
      metrics_(metrics),
      breaker_(options_.breaker),
      wake_(executor_),
      lanes_wake_(executor_),
      settle_wake_(executor_),
      heartbeat_wake_(executor_),
      loops_(executor_, options_.name, [this] { wind_down(); }) {}

Worker::~Worker() = default;

Task<void> Worker::start() {
  co_return;
}

void Worker::stop() {
  stop_asked_ = true;
  wind_down();
}

void Worker::wind_down() {
  stopping_ = true;
  give_back_waiting();
  for (auto* signal : {&wake_, &lanes_wake_, &settle_wake_, &heartbeat_wake_}) signal->set();
}

void Worker::set_concurrency(std::size_t concurrency) {
  options_.concurrency = std::min(concurrency, kLanesMax);
  launch_lanes();
  lanes_wake_.set();
}

void Worker::set_lease(std::chrono::milliseconds lease) {
  lease_ = LeaseClock(lease);
  heartbeat_wake_.set();
}

void Worker::launch_lanes() {
  if (stopping_) return;
  if (lanes_.size() < options_.concurrency) lanes_.resize(options_.concurrency);
  for (std::size_t index = 0; index < options_.concurrency; ++index) {
    if (lanes_[index]) continue;
    lanes_[index] = true;
    loops_.launch("lane", lane(index));
  }
}

Task<void> Worker::run() {
  stopping_ = stop_asked_;
  claiming_ended_ = false;
  draining_ended_ = false;
  set_concurrency(options_.concurrency);
  loops_.launch("claim", claim_loop());
  loops_.launch("settle", settle_loop());
  // Rows are kept until the last one is settled: this loop ends after the others.
  constexpr std::size_t kKeepingLoops = 1;
  loops_.launch("heartbeat", heartbeat_loop());
  co_await loops_.wait(kKeepingLoops);
  draining_ended_ = true;
  heartbeat_wake_.set();
  co_await loops_.wait();
  if (loops_.has_failed()) drop_all();
  co_await loops_.join();
}

void Worker::become(Job& job, Fate fate) {
  if (!may_become(job.fate, fate)) {
    throw std::logic_error(
        fmt::format("a job that is {} can't become {}", to_string(job.fate), to_string(fate)));
  }
  --counts_.at(static_cast<std::size_t>(job.fate));
  job.fate = fate;
  if (is_held(fate)) {
    ++counts_.at(static_cast<std::size_t>(fate));
  } else {
    held_.erase(job.ticket);
  }
}

Jobs Worker::jobs_that_are(Fate fate) const {
  Jobs jobs;
  if (count(fate) == 0) return jobs;
  for (const auto& [ticket, job] : held_) {
    if (job->fate == fate) jobs.push_back(job);
  }
  return jobs;
}

std::vector<Ticket> Worker::tickets() const {
  std::vector<Ticket> tickets;
  tickets.reserve(held_.size());
  for (const auto& [ticket, job] : held_) tickets.push_back(ticket);
  return tickets;
}

void Worker::drop_all() {
  while (!held_.empty()) {
    const auto job = held_.begin()->second;
    drop(*job);
  }
  waiting_.clear();
  ended_.clear();
  claim_failed_ = true;
}

Task<void> Worker::claim_loop() {
  const AtEnd ended([this] {
    claiming_ended_ = true;
    settle_wake_.set();
  });
  Backoff backoff(kRetryFirst, kRetryMost);
  bool is_woken = true;
  while (!stopping_) {
    wake_.reset();
    const auto more = co_await attempt(claim_some(is_woken || clock_.steady() >= poll_at_));
    if (!waiting_.empty()) lanes_wake_.set();
    if (!more) {
      claim_failed_ = true;
      log::warning("worker", "rows could not be claimed, trying again", {{"error", describe(more.error())}});
      co_await sleep_for(backoff.next());
      is_woken = true;
      continue;
    }
    backoff.reset();
    if (*more) {
      is_woken = true;
    } else if (!stopping_) {
      if (claim_rest_ > 0ms) co_await sleep_for(std::exchange(claim_rest_, 0ms));
      is_woken = co_await wake_.wait_for(idle_wait());
    }
  }
  give_back_waiting();
  if (!claim_failed_) co_return;
  const auto given_back = co_await attempt(give_back_unknown());
  if (!given_back) {
    log::warning("worker", "rows may have been claimed last and are left to their lease",
                 {{"error", describe(given_back.error())}});
  }
}

Task<void> Worker::give_back_unknown() {
  if (clock_.steady() >= unknown_left_until_) {
    auto known = tickets();
    for (const auto& [ticket, since] : dropped_) known.push_back(ticket);
    co_await port_.give_back_unknown(known);
  }
  claim_failed_ = false;
}

// True: there may be more.
Task<bool> Worker::take_over_some() {
  const auto began = clock_.steady();
  if (began < take_over_at_ || waiting_.size() >= kTakenMost) co_return false;
  const auto held = tickets();
  auto lapsed = co_await port_.take_over(lease_.lease(), options_.batch, held);
  metrics_.lease_expired.add(lapsed.size());
  for (const auto& job : lapsed) job->leased_from = began;
  const bool more = lapsed.size() == options_.batch;
  if (!more) take_over_at_ = began + options_.take_over_every;
  line_up(std::move(lapsed), true);
  if (waiting_.size() >= kTakenMost) co_return false;
  co_return more;
}

// True: there may be more for which there is room.
Task<bool> Worker::claim_some(bool is_time) {
  if (claim_failed_) co_await give_back_unknown();
  const bool more_lapsed = co_await take_over_some();
  // A probe is due by the breaker's clock.
  if (!is_time && breaker_.state() == Breaker::State::closed) co_return more_lapsed;
  const auto most = room();
  if (most == 0 || stopping_) co_return more_lapsed;
  poll_at_ = clock_.steady() + options_.poll_every;
  const auto asked = clock_.steady();
  auto jobs = co_await port_.claim(most);
  const auto took = clock_.steady() - asked;
  metrics_.claim_ms.observe(std::chrono::duration<double, std::milli>(took).count());
  if (took > kSlowClaim && jobs.size() < most && port_.passes_rows_over()) {
    claim_rest_ = std::min(kRestMost, std::chrono::ceil<std::chrono::milliseconds>(took) * kRestFactor);
  }
  metrics_.claimed.add(jobs.size());
  for (const auto& job : jobs) job->leased_from = asked;
  has_more_ = jobs.size() == most;
  line_up(std::move(jobs), false);
  co_return more_lapsed || (has_more_ && room() > 0);
}

std::size_t Worker::room() {
  if (count(Fate::ended) + count(Fate::settling) + count(Fate::locked) >= kUnsettledMax) return 0;
  const auto allowed = breaker_.allowed(clock_.steady(), options_.concurrency);
  show_breaker();
  if (breaker_.state() != Breaker::State::closed) {
    const auto begun = count(Fate::working) + waiting_.size();
    return begun < allowed ? allowed - begun : 0;
  }
  // The lanes keep half a batch to work on while the next one is on its way.
  return waiting_.size() * 2 > options_.batch ? 0 : options_.batch - waiting_.size();
}

std::chrono::milliseconds Worker::idle_wait() const {
  // Lapsed rows don't wait for a slow poll.
  const auto idle = std::min(options_.poll_every, options_.take_over_every);
  if (breaker_.state() != Breaker::State::open) return idle;
  const auto until = std::chrono::ceil<std::chrono::milliseconds>(breaker_.probe_at() - clock_.steady());
  return std::clamp(until, 1ms, idle);
}

void Worker::line_up(Jobs jobs, bool first) {
  for (auto& job : jobs) {
    held_.emplace(job->ticket, job);
    ++counts_.at(static_cast<std::size_t>(Fate::waiting));
    if (first) {
      waiting_.push_front(std::move(job));
    } else {
      waiting_.push_back(std::move(job));
    }
  }
  if (!jobs.empty()) lanes_wake_.set();
}

bool Worker::can_start() {
  return !waiting_.empty() && count(Fate::working) < breaker_.allowed(clock_.steady(), options_.concurrency);
}

Task<void> Worker::lane(std::size_t index) {
  const AtEnd ended([this, index] { lanes_[index] = false; });
  while (!stopping_ && index < options_.concurrency) {
    if (!can_start()) {
      lanes_wake_.reset();
      co_await lanes_wake_.wait();
      continue;
    }
    auto job = std::move(waiting_.front());
    waiting_.pop_front();
    if (has_more_ && waiting_.size() * 2 <= options_.batch) wake_.set();
    co_await process(std::move(job));
  }
}

Task<void> Worker::process(JobPtr job) {
  become(*job, Fate::working);
  const JobHold hold(*this, *job);
  const auto ended = co_await attempt(handler_.handle(*job, hold));
  auto failure = ended ? std::exception_ptr() : ended.error();
  if (ended) {
    try {
      conclude(job, *ended);
    } catch (...) {
      failure = std::current_exception();
    }
  }
  if (failure) {
    log::error("worker", "a job was dropped, its lease will lapse",
               {{"id", job->ticket.id.value}, {"error", describe(failure)}});
    drop(*job);
  }
  // A job is waiting and the breaker may let it go now.
  if (!waiting_.empty()) lanes_wake_.set();
  end_undecided_when_idle();
}

void Worker::conclude(const JobPtr& job, const Handler::Ended& ended) {
  job->outcome = ended.outcome;
  bool counts = true;
  if (ended.reach) {
    auto ruling = breaker_.ended(job->ticket.id, *ended.reach, clock_.steady(), options_.concurrency);
    counts = ruling.counts;
    if (!ruling.refunds.empty()) uncount_tries(std::move(ruling.refunds));
    show_breaker();
    if (breaker_.state() == Breaker::State::open) give_back_waiting();
  }
  judge_job(*job, counts);
  const bool is_last_try = job->outcome.kind == Outcome::Kind::transient &&
                           job->verdict.status == RowStatus::aborted && !job->outcome.counts_always;
  if (is_last_try && ended.reach == Reach::unreachable) {
    become(*job, Fate::undecided);
  } else {
    end(job);
  }
  if (ended.reach == Reach::reached) end_undecided();
  if (breaker_.state() != Breaker::State::closed) wake_.set();
}

void Worker::judge_job(Job& job, bool counts) {
  const auto jitter = std::uniform_real_distribution<double>(0, 1)(random_);
  job.verdict = judge(job.row, job.outcome, counts, options_.policy, jitter);
  handler_.on_verdict(job);
}

void Worker::end(const JobPtr& job) {
  become(*job, Fate::ended);
  ended_.push_back(job);
  settle_wake_.set();
}

void Worker::end_undecided() {
  for (const auto& job : jobs_that_are(Fate::undecided)) end(job);
}

void Worker::end_undecided_when_idle() {
  if (count(Fate::working) == 0 && waiting_.empty()) end_undecided();
}

void Worker::give_back_waiting() {
  for (const auto& job : std::exchange(waiting_, {})) {
    job->outcome = {.kind = Outcome::Kind::untouched};
    judge_job(*job, false);
    end(job);
  }
  end_undecided_when_idle();
}

// Tries of jobs that are not settled yet are judged anew; for the others the settle loop takes attempts back.
void Worker::uncount_tries(std::map<JobId, int> tries) {
  for (const auto fate : {Fate::ended, Fate::locked, Fate::undecided}) {
    for (const auto& job : jobs_that_are(fate)) {
      const auto found = tries.find(job->ticket.id);
      if (found == tries.end() || job->outcome.kind == Outcome::Kind::untouched) continue;
      judge_job(*job, false);
      if (--found->second == 0) tries.erase(found);
    }
  }
  end_undecided();
  for (const auto& [id, count] : tries) owed_[id] += count;
  settle_wake_.set();
}

// Remembers the ticket: a row that was begun must not be given back as if it had never been claimed.
void Worker::drop(Job& job) {
  become(job, Fate::dropped);
  const auto now = clock_.steady();
  const auto lapsed_for_sure = 2 * lease_.lease();
  std::erase_if(dropped_, [&](const auto& dropped) { return now - dropped.second > lapsed_for_sure; });
  if (dropped_.size() < kDroppedMax) {
    dropped_.emplace(job.ticket, now);
  } else {
    unknown_left_until_ = now + lapsed_for_sure;
  }
}

void Worker::show_breaker() {
  const auto state = breaker_.state();
  if (state == breaker_shown_) return;
  metrics_.breaker.set(level(state));
  if (state == Breaker::State::open && breaker_shown_ == Breaker::State::closed) {
    log::warning("worker",
                 "the breaker has opened: nobody answers, nothing is claimed until a probe gets through",
                 {{"worker", options_.name}});
  } else if (state == Breaker::State::closed) {
    log::info("worker", "the breaker has closed", {{"worker", options_.name}});
  }
  breaker_shown_ = state;
}

}  // namespace todoke::queue

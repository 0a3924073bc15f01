#include "queue/worker.hpp"

#include <algorithm>
#include <functional>
#include <utility>

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
// More than anybody works on at once; bounds what a wrong setting costs.
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
    return !job_.lost && !worker_.stopping_ &&
           worker_.lease_.allows(job_.leased_from, worker_.clock_.steady(), needed);
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
      house_wake_(executor_),
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
  give_back_buffer();
  for (auto* signal : {&wake_, &lanes_wake_, &settle_wake_, &heartbeat_wake_, &house_wake_}) signal->set();
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
  loops_.launch("house", house_loop());
  // Rows are kept until the last one is settled: this loop ends after the others.
  constexpr std::size_t kKeepingLoops = 1;
  loops_.launch("heartbeat", heartbeat_loop());
  co_await loops_.wait(kKeepingLoops);
  draining_ended_ = true;
  heartbeat_wake_.set();
  co_await loops_.wait();
  if (loops_.has_failed()) leave_to_leases();
  co_await loops_.join();
}

// Remembered as dropped: what was begun must not be given back as if it had never been claimed.
void Worker::leave_to_leases() {
  for (const auto& ticket : tickets()) drop(ticket);
  buffer_.clear();
  unsettled_.clear();
  deferred_.clear();
  undecided_.clear();
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
    std::exception_ptr failure;
    bool more = false;
    try {
      more = co_await claim_some(is_woken || clock_.steady() >= poll_at_);
      backoff.reset();
    } catch (...) {
      failure = std::current_exception();
    }
    if (!buffer_.empty()) lanes_wake_.set();
    if (failure) {
      claim_failed_ = true;
      log::warning("worker", "rows could not be claimed, trying again", {{"error", describe(failure)}});
      co_await sleep_for(backoff.next());
      is_woken = true;
    } else if (more) {
      is_woken = true;
    } else if (!stopping_) {
      if (claim_rest_ > 0ms) co_await sleep_for(std::exchange(claim_rest_, 0ms));
      is_woken = co_await wake_.wait_for(idle_wait());
    }
  }
  give_back_buffer();
  if (claim_failed_) {
    std::exception_ptr failure;
    try {
      co_await give_back_unknown();
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure) {
      log::warning("worker", "rows may have been claimed last and are left to their lease",
                   {{"error", describe(failure)}});
    }
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
  if (began < take_over_at_ || buffer_.size() >= kTakenMost) co_return false;
  const auto held = tickets();
  auto lapsed = co_await port_.take_over(lease_.lease(), options_.batch, held);
  metrics_.lease_expired.add(lapsed.size());
  for (const auto& job : lapsed) job->leased_from = began;
  const bool more = lapsed.size() == options_.batch;
  if (!more) take_over_at_ = began + options_.take_over_every;
  deliver(std::move(lapsed), true);
  co_return more&& buffer_.size() < kTakenMost;
}

// True: there may be more for which there is room.
Task<bool> Worker::claim_some(bool is_time) {
  if (claim_failed_) co_await give_back_unknown();
  const bool more_lapsed = co_await take_over_some();
  // A probe is due by the breaker's clock.
  if (!is_time && breaker_.state() == Breaker::State::closed) co_return more_lapsed;
  if (room() == 0 || stopping_) co_return more_lapsed;
  poll_at_ = clock_.steady() + options_.poll_every;
  co_await port_.promote_due(options_.batch);
  const auto asked = clock_.steady();
  const auto most = room();
  if (most == 0 || stopping_) co_return more_lapsed;
  auto jobs = co_await port_.claim(most);
  const auto took = clock_.steady() - asked;
  metrics_.claim_seconds.observe(std::chrono::duration<double>(took).count());
  if (took > kSlowClaim && jobs.size() < most && port_.passes_rows_over()) {
    claim_rest_ = std::min(kRestMost, std::chrono::ceil<std::chrono::milliseconds>(took) * kRestFactor);
  }
  metrics_.claimed.add(jobs.size());
  for (const auto& job : jobs) job->leased_from = asked;
  has_more_ = jobs.size() == most;
  deliver(std::move(jobs), false);
  co_return more_lapsed || (has_more_ && room() > 0);
}

std::size_t Worker::room() {
  if (unsettled_.size() + deferred_.size() >= kUnsettledMax) return 0;
  const auto allowed = breaker_.allowed(clock_.steady(), options_.concurrency);
  show_breaker();
  if (breaker_.state() != Breaker::State::closed) {
    const auto taken = in_flight_ + buffer_.size();
    return taken < allowed ? allowed - taken : 0;
  }
  // Half a batch is left to the lanes while the next one is on its way.
  return buffer_.size() * 2 > options_.batch ? 0 : options_.batch - buffer_.size();
}

std::chrono::milliseconds Worker::idle_wait() const {
  // Lapsed rows don't wait for a slow poll.
  const auto idle = std::min(options_.poll_every, options_.take_over_every);
  if (breaker_.state() != Breaker::State::open) return idle;
  const auto until = std::chrono::ceil<std::chrono::milliseconds>(breaker_.probe_at() - clock_.steady());
  return std::clamp(until, 1ms, idle);
}

void Worker::deliver(Jobs jobs, bool first) {
  for (auto& job : jobs) {
    held_[job->ticket.id.value] = job;
    if (first) {
      buffer_.push_front(std::move(job));
    } else {
      buffer_.push_back(std::move(job));
    }
  }
  if (!jobs.empty()) lanes_wake_.set();
}

bool Worker::can_start() {
  return !buffer_.empty() && in_flight_ < breaker_.allowed(clock_.steady(), options_.concurrency);
}

Task<void> Worker::lane(std::size_t index) {
  const AtEnd ended([this, index] { lanes_[index] = false; });
  while (!stopping_ && index < options_.concurrency) {
    if (!can_start()) {
      lanes_wake_.reset();
      co_await lanes_wake_.wait();
      continue;
    }
    auto job = std::move(buffer_.front());
    buffer_.pop_front();
    if (has_more_ && buffer_.size() * 2 <= options_.batch) wake_.set();
    co_await process(std::move(job));
  }
}

Task<void> Worker::process(JobPtr job) {
  ++in_flight_;
  std::exception_ptr failure;
  Handler::Ended ended;
  const JobHold hold(*this, *job);
  try {
    ended = co_await handler_.handle(*job, hold);
  } catch (...) {
    failure = std::current_exception();
  }
  --in_flight_;
  // A job is waiting and the breaker may let it go now.
  if (!buffer_.empty()) lanes_wake_.set();
  if (!failure) {
    try {
      conclude(job, ended);
    } catch (...) {
      failure = std::current_exception();
    }
  }
  if (failure) {
    // Whoever takes it over finds it in doubt.
    log::error("worker", "a job was dropped, its lease will lapse",
               {{"id", job->ticket.id.value}, {"error", describe(failure)}});
    drop(job->ticket);
  }
  decide_when_idle();
}

void Worker::conclude(const JobPtr& job, Handler::Ended ended) {
  bool counts = true;
  if (ended.reach) {
    auto ruling = breaker_.ended(job->ticket.id, *ended.reach, clock_.steady(), options_.concurrency);
    counts = ruling.counts;
    if (!ruling.refunds.empty()) refund(std::move(ruling.refunds));
    show_breaker();
    if (breaker_.state() == Breaker::State::open) give_back_buffer();
  }
  const bool given_back = ended.then == Handler::Ended::Then::give_back;
  const bool is_last = !given_back && handler_.conclude(*job, counts);
  if (is_last && ended.reach == Reach::unreachable) {
    undecided_.push_back(job);
  } else {
    let_go(job, given_back);
  }
  if (ended.reach == Reach::reached) decide();
  if (breaker_.state() != Breaker::State::closed) wake_.set();
}

void Worker::decide() {
  for (auto& job : std::exchange(undecided_, {})) let_go(std::move(job), false);
}

void Worker::decide_when_idle() {
  if (in_flight_ == 0 && buffer_.empty()) decide();
}

// Those that are not settled yet are concluded anew; the others get their attempts back.
void Worker::refund(std::map<JobId, int> refunds) {
  const auto conclude_anew = [&](const JobPtr& job) {
    const auto found = refunds.find(job->ticket.id);
    if (found == refunds.end()) return;
    handler_.conclude(*job, false);
    if (--found->second == 0) refunds.erase(found);
  };
  for (const auto& waiting : unsettled_) {
    if (!waiting.give_back) conclude_anew(waiting.job);
  }
  for (const auto& waiting : deferred_) {
    if (!waiting.give_back) conclude_anew(waiting.job);
  }
  for (const auto& job : undecided_) conclude_anew(job);
  decide();
  for (const auto& [id, tries] : refunds) refunds_[id] += tries;
  settle_wake_.set();
}

void Worker::give_back_buffer() {
  for (auto& job : std::exchange(buffer_, {})) let_go(std::move(job), true);
  decide_when_idle();
}

void Worker::let_go(JobPtr job, bool give_back) {
  unsettled_.push_back(Unsettled{std::move(job), give_back});
  settle_wake_.set();
}

void Worker::forget(const Ticket& ticket) {
  const auto held = held_.find(ticket.id.value);
  if (held != held_.end() && held->second->ticket == ticket) held_.erase(held);
}

void Worker::drop(const Ticket& ticket) {
  forget(ticket);
  const auto now = clock_.steady();
  const auto lapsed_for_sure = 2 * lease_.lease();
  std::erase_if(dropped_, [&](const auto& dropped) { return now - dropped.second > lapsed_for_sure; });
  if (dropped_.size() < kDroppedMax) {
    dropped_.emplace(ticket, now);
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

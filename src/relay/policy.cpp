#include "relay/policy.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <boost/asio/post.hpp>

#include "base/attempt.hpp"
#include "base/log.hpp"
#include "base/loops.hpp"

namespace todoke::relay {
namespace {

constexpr std::uint64_t kLogLinesPerSecond = 1;

std::string label_of(PolicyAction action) {
  switch (action) {
    case PolicyAction::accept:
      return "accept";
    case PolicyAction::reject:
      return "reject";
    case PolicyAction::shadow_reject:
      return "shadow_reject";
    case PolicyAction::failed:
      return "failed";
  }
  throw std::logic_error("an action without a label");
}

}  // namespace

Policy::Policy(const Executor& executor, PolicySettings settings, const Clock& clock,
               metrics::Registry& registry)
    : executor_(executor),
      settings_(std::move(settings)),
      clock_(clock),
      decisions_(registry.counters("todoke_policy_decisions_total",
                                   "Events that relay.policy_command was asked about, by what came of it.",
                                   {"action"})),
      seconds_(registry.histogram("todoke_policy_seconds",
                                  "From asking relay.policy_command to its answer, or to the timeout.",
                                  metrics::seconds_buckets())),
      waiting_gauge_(
          registry.gauge("todoke_policy_waiting", "Events that wait for an answer of relay.policy_command.")),
      unreadable_(registry.counter("todoke_policy_unreadable_total",
                                   "Lines of relay.policy_command that are no answer.")),
      is_on_(!settings_.command.empty()),
      accepts_on_failure_(settings_.accepts_on_failure),
      timeout_(settings_.timeout),
      log_rate_(kLogLinesPerSecond),
      asked_(executor),
      changed_(executor) {}

bool Policy::ask(const EventPtr& event, const PolicySource& source, Tell tell,
                 const std::function<void()>& on_room) {
  const auto now = clock_.steady();
  PolicyQueue::Question question{event->id(), policy_question(*event, source, seconds_of(clock_.now())), now,
                                 now + timeout_.load(), std::move(tell)};
  const bool has_room = ++waiting_ <= kWaitingHigh;
  asio::post(executor_,
             [this, question = std::move(question), on_room = has_room ? nullptr : on_room]() mutable {
               take(std::move(question));
               if (on_room) rooms_.push_back(std::move(on_room));
               make_room();
             });
  return has_room;
}

void Policy::take(PolicyQueue::Question question) {
  const bool is_full =
      queue_.size() >= kWaitingMax || queue_.bytes() + question.line.size() > kWaitingBytesMax;
  if (is_full || stop_asked_) return tell(std::move(question), {});
  if (program_) program_->send(question.line);
  queue_.add(std::move(question));
  waiting_gauge_.set(static_cast<double>(queue_.size()));
  asked_.set();
}

void Policy::tell(PolicyQueue::Question question, PolicyVerdict verdict) {
  --waiting_;
  waiting_gauge_.set(static_cast<double>(queue_.size()));
  seconds_.observe(seconds_in(clock_.steady() - question.asked_at));
  decisions_.with({label_of(verdict.action)}).add();
  question.tell(std::move(verdict));
}

void Policy::fail(std::vector<PolicyQueue::Question> questions) {
  for (auto& question : questions) tell(std::move(question), {});
  make_room();
}

void Policy::make_room() {
  if (waiting_ > kWaitingHigh / 2) return;
  for (const auto& on_room : std::exchange(rooms_, {})) on_room();
}

void Policy::hear(std::string_view line) {
  auto answer = read_policy_answer(line);
  if (!answer) {
    unreadable_.add();
    if (log_rate_.allows(clock_.steady()))
      log::warning("policy", "a line of relay.policy_command is no answer", {{"error", answer.error()}});
    return;
  }
  silences_ = 0;
  auto question = queue_.take(answer->id);
  if (!question) return;
  tell(std::move(*question), std::move(answer->verdict));
  make_room();
}

void Policy::set(PolicySettings settings) {
  timeout_ = settings.timeout;
  accepts_on_failure_ = settings.accepts_on_failure;
  const bool is_other = settings.command != settings_.command;
  settings_ = std::move(settings);
  if (!is_other) return;
  is_on_ = !settings_.command.empty();
  wake_up();
}

void Policy::stop() {
  stop_asked_ = true;
  wake_up();
}

void Policy::wake_up() {
  changed_.set();
  asked_.set();
}

Task<void> Policy::run() {
  while (!stop_asked_) {
    changed_.reset();
    if (settings_.command.empty()) {
      fail(queue_.take_all());
      co_await changed_.wait();
    } else {
      co_await run_program();
    }
  }
  fail(queue_.take_all());
}

// Until another one is wanted. Throws when the program ends by itself.
Task<void> Policy::run_program() {
  silences_ = 0;
  program_ = std::make_unique<PolicyProgram>(executor_, settings_.command, kAnswerBytesMax,
                                             [this](std::string_view line) { hear(line); });
  Loops loops(executor_, "policy", [this] { wake_up(); });
  program_->send(queue_.lines());
  loops.launch("program", program_->run(changed_));
  loops.launch("time", watch_time());
  const auto ended = co_await attempt(loops.join());
  program_.reset();
  if (!ended) std::rethrow_exception(ended.error());
}

Task<void> Policy::watch_time() {
  while (!changed_.is_set()) {
    const auto until = queue_.first_until();
    if (!until) {
      asked_.reset();
      co_await asked_.wait();
      continue;
    }
    co_await changed_.wait_for(std::max<SteadyTime::duration>(*until - clock_.steady(), {}));
    auto overdue = queue_.take_overdue(clock_.steady());
    silences_ += overdue.size();
    fail(std::move(overdue));
    if (silences_ >= kSilencesMax) throw std::runtime_error("relay.policy_command does not answer");
  }
}

}  // namespace todoke::relay

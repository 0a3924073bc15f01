#include "base/service.hpp"

#include <exception>
#include <optional>
#include <ranges>
#include <utility>

#include "base/attempt.hpp"
#include "base/backoff.hpp"
#include "base/log.hpp"

namespace todoke {

namespace {
constexpr std::chrono::milliseconds kRestartFirst(100);
constexpr std::chrono::milliseconds kRestartMost(10'000);
// A service that ran this long before it died starts again at the first delay.
constexpr std::chrono::seconds kRanWell(30);
}  // namespace

std::string_view to_string(HealthState state) {
  switch (state) {
    case HealthState::up:
      return "up";
    case HealthState::starting:
      return "starting";
    case HealthState::degraded:
      return "degraded";
    case HealthState::down:
      return "down";
  }
  return "down";
}

void HealthBoard::report(const std::string& name, bool essential, Health health) {
  const std::lock_guard lock(mutex_);
  lines_[name] = Line{name, essential, std::move(health)};
}

void HealthBoard::forget(const std::string& name) {
  const std::lock_guard lock(mutex_);
  lines_.erase(name);
}

std::vector<HealthBoard::Line> HealthBoard::lines() const {
  const std::lock_guard lock(mutex_);
  std::vector<Line> result;
  for (const auto& [name, line] : lines_) result.push_back(line);
  return result;
}

HealthState HealthBoard::overall() const {
  const std::lock_guard lock(mutex_);
  auto state = HealthState::up;
  for (const auto& [name, line] : lines_) {
    const auto s = line.health.state;
    if (line.essential && (s == HealthState::down || s == HealthState::starting)) return HealthState::down;
    if (s != HealthState::up) state = HealthState::degraded;
  }
  return state;
}

struct Supervisor::Child {
  Child(std::shared_ptr<Service> s, const Executor& executor)
      : service(std::move(s)), started(executor), stop_asked(executor), ended(executor) {}
  [[nodiscard]] std::string name() const { return std::string(service->name()); }

  // Ends or throws when the service has.
  Task<void> start_and_run(const Clock& clock, HealthBoard& board) {
    up_since.reset();
    co_await service->start();
    up_since = clock.steady();
    board.report(name(), service->essential(), {HealthState::up, {}});
    started.set();
    co_await service->run();
  }

  std::shared_ptr<Service> service;
  Signal started;  // up for the first time, or given up
  Signal stop_asked;
  Signal ended;
  std::exception_ptr unmendable;
  std::optional<SteadyTime> up_since;  // of the run that is under way, or was the last
  bool spawned = false;
  bool stops_first = false;
};

Supervisor::Supervisor(Executor executor, const Clock& clock, HealthBoard& board, metrics::Registry& registry)
    : executor_(std::move(executor)),
      clock_(clock),
      board_(board),
      restarts_(registry.counters("todoke_service_restarts_total",
                                  "Times a service died and was started again.", {"service"})) {}

Supervisor::~Supervisor() = default;

void Supervisor::add(std::shared_ptr<Service> service, bool stops_first) {
  auto child = std::make_shared<Child>(std::move(service), executor_);
  child->stops_first = stops_first;
  restarts_.with({child->name()});
  board_.report(child->name(), child->service->essential(), {HealthState::starting, "waits for its turn"});
  children_.push_back(std::move(child));
}

void Supervisor::validate() const {
  for (const auto& child : children_) {
    if (auto valid = child->service->validate(); !valid) throw UserError(valid.error().message);
  }
}

Task<void> Supervisor::start() {
  for (const auto& child : children_) {
    if (stopping_) co_return;
    child->spawned = true;
    spawn(executor_, supervise(child), [child](const std::exception_ptr& error) {
      if (error)
        log::error("supervisor", "supervision ended",
                   {{"service", child->name()}, {"error", describe(error)}});
      child->started.set();
      child->ended.set();
    });
    co_await child->started.wait();
    if (child->unmendable) std::rethrow_exception(child->unmendable);
  }
}

Task<void> Supervisor::supervise(std::shared_ptr<Child> child) {
  auto& service = *child->service;
  const auto name = child->name();
  Backoff backoff(kRestartFirst, kRestartMost);
  bool was_up = false;
  while (!child->stop_asked.is_set()) {
    if (!was_up && restarts_.with({name}).value() == 0) {
      board_.report(name, service.essential(), {HealthState::starting, {}});
    }
    const auto ran = co_await attempt(child->start_and_run(clock_, board_));
    was_up = was_up || child->up_since;
    if (!ran && !was_up && is_a<UserError>(ran.error())) {
      child->unmendable = ran.error();
      board_.report(name, service.essential(), {HealthState::down, describe(child->unmendable)});
      co_return;
    }
    if (child->stop_asked.is_set()) break;
    const auto why = ran ? std::string("ended by itself") : describe(ran.error());
    if (child->up_since && clock_.steady() - *child->up_since > kRanWell) backoff.reset();
    const auto delay = backoff.next();
    restarts_.with({name}).add();
    board_.report(name, service.essential(), {was_up ? HealthState::degraded : HealthState::down, why});
    log::error("supervisor", "service died, will be started again",
               {{"service", name}, {"error", why}, {"delay_ms", delay.count()}});
    co_await child->stop_asked.wait_for(delay);
  }
  board_.forget(name);
}

void Supervisor::interrupt() {
  stopping_ = true;
  for (const auto& child : children_) {
    if (child->spawned) child->started.set();
  }
}

Task<void> Supervisor::stop() {
  stopping_ = true;
  for (const bool first : {true, false}) {
    for (const auto& child : std::views::reverse(children_)) {
      if (!child->spawned || child->stops_first != first) continue;
      child->stop_asked.set();
      if (!child->ended.is_set()) child->service->stop();
      co_await child->ended.wait();
      log::debug("supervisor", "service stopped", {{"service", child->name()}});
    }
  }
}

}  // namespace todoke

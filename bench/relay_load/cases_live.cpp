// Cases with subscribers: how soon an event that was published reaches them, and how many a relay can serve.
#include <algorithm>

#include <fmt/format.h>

#include "base/json_writer.hpp"
#include "relay_load/cases.hpp"
#include "relay_load/publisher.hpp"

namespace todoke::bench {
namespace {

constexpr std::string_view kSubscription = "live";

std::string subscribe_frame(const std::string& topic) {
  std::string message = fmt::format(R"(["REQ","{}",{{"#t":[)", kSubscription);
  append_json_string(message, topic);
  message += R"(],"limit":0}])";
  return text_frame(message);
}

// Connections 0 to subscribers-1 are subscribed; waits until all of them have their EOSE.
class Subscribing final : public CaseReceiver {
 public:
  using CaseReceiver::CaseReceiver;

  void run(Loop& loop, const Run& run, std::size_t subscribers) {
    const auto frame = subscribe_frame(run.options.topic);
    for (std::size_t i = 0; i < subscribers; ++i) loop.queue(loop.connect(run.url), frame);
    loop.run(
        *this, [&] { return answered_ == subscribers; }, [](SteadyTime) { return Loop::kNever; },
        [&] { return fmt::format("{} of {} subscriptions had an EOSE", answered_, subscribers); });
  }

 private:
  bool on_eose(std::size_t /*connection*/, const Reply& /*reply*/) override {
    ++answered_;
    return true;
  }
  // Of others, or what came to an earlier case; nothing that counts here.
  bool on_event(std::size_t /*connection*/, const Reply& /*reply*/) override { return false; }

  std::size_t answered_ = 0;
};

// Which subscriber has had which event. Events of others in the same topic are passed over.
class Deliveries {
 public:
  Deliveries(const EventSet& events, std::size_t subscribers)
      : events_(events), seen_(events.size() * subscribers, false) {}

  // The event, when it is one of ours and new to this subscriber.
  std::optional<std::size_t> note(std::size_t subscriber, const Reply& reply, CaseResult& result) {
    const auto index = events_.index_of(id_in(reply.text));
    if (!index) return std::nullopt;
    const auto at = subscriber * events_.size() + *index;
    if (seen_[at]) {
      result.problem("an event came twice to the same subscription");
      return std::nullopt;
    }
    seen_[at] = true;
    ++count_;
    return index;
  }
  [[nodiscard]] bool has(std::size_t subscriber, std::size_t index) const {
    return seen_[subscriber * events_.size() + index];
  }
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  const EventSet& events_;
  std::vector<bool> seen_;
  std::size_t count_ = 0;
};

// Connection 0 is subscribed, another one publishes.
class LiveLatency final : public CaseReceiver {
 public:
  LiveLatency(const EventSet& events, Schedule schedule, CaseResult& result)
      : CaseReceiver(result),
        events_(events),
        schedule_(std::move(schedule)),
        ledger_(events, result),
        deliveries_(events, 1) {}

  void run(Loop& loop, std::size_t publisher, std::chrono::seconds limit) {
    const Stopwatch watch;
    const auto is_over = [&] {
      if (ledger_.settled() < schedule_.sent() || deliveries_.count() < ledger_.accepted()) return false;
      return schedule_.sent() == events_.size() || watch.seconds() >= static_cast<double>(limit.count());
    };
    const auto waiting = [&] {
      return fmt::format("of {} events {} had an OK and {} arrived live", schedule_.sent(), ledger_.settled(),
                         deliveries_.count());
    };
    loop.run(
        *this, is_over, [&](SteadyTime now) { return schedule_.step(now, loop, publisher, events_); },
        waiting);
    watch.stop(result());
    ledger_.require_some();
  }
  Latencies latencies;
  [[nodiscard]] Schedule& schedule() { return schedule_; }

 private:
  bool on_ok(std::size_t /*connection*/, const Reply& reply) override {
    const auto index = ledger_.settle(reply);
    if (!index) return false;
    if (ledger_.is_refused(*index) || deliveries_.has(0, *index)) schedule_.settled();
    return true;
  }
  bool on_event(std::size_t /*connection*/, const Reply& reply) override {
    const auto index = deliveries_.note(0, reply, result());
    if (!index) return false;
    latencies.add(std::chrono::steady_clock::now() - schedule_.since(*index));
    if (ledger_.is_accepted(*index)) schedule_.settled();
    return true;
  }

  const EventSet& events_;
  Schedule schedule_;
  Ledger ledger_;
  Deliveries deliveries_;
};

// One burst to all subscribers; the publisher is the connection behind them.
class Burst final : public CaseReceiver {
 public:
  Burst(const EventSet& events, std::size_t subscribers, CaseResult& result)
      : CaseReceiver(result),
        events_(events),
        subscribers_(subscribers),
        ledger_(events, result),
        deliveries_(events, subscribers) {}

  void run(Loop& loop) {
    for (std::size_t i = 0; i < events_.size(); ++i) loop.queue(subscribers_, events_.frame(i));
    const auto is_over = [&] {
      return ledger_.settled() == events_.size() && deliveries_.count() >= ledger_.accepted() * subscribers_;
    };
    const auto waiting = [&] {
      return fmt::format("{} of {} events had an OK, {} of {} deliveries came", ledger_.settled(),
                         events_.size(), deliveries_.count(), ledger_.accepted() * subscribers_);
    };
    loop.run(*this, is_over, [](SteadyTime) { return Loop::kNever; }, waiting);
    ledger_.require_some();
  }
  [[nodiscard]] std::size_t deliveries() const { return deliveries_.count(); }

 private:
  bool on_ok(std::size_t /*connection*/, const Reply& reply) override {
    return ledger_.settle(reply).has_value();
  }
  bool on_event(std::size_t connection, const Reply& reply) override {
    return deliveries_.note(connection, reply, result()).has_value();
  }

  const EventSet& events_;
  std::size_t subscribers_;
  Ledger ledger_;
  Deliveries deliveries_;
};

// Latencies of one subscriber in a phase of its own.
void live(Run& run, const EventSet& events, Schedule schedule, const std::string& key,
          const std::string& label) {
  Loop loop(run.options.deflate);
  Subscribing(run.result).run(loop, run, 1);
  LiveLatency phase(events, std::move(schedule), run.result);
  phase.run(loop, loop.connect(run.url), run.options.seconds);
  run.figure(key + "_p50_ms", label + ", p50", "ms", phase.latencies.quantile(0.5));
  run.figure(key + "_p99_ms", label + ", p99", "ms", phase.latencies.quantile(0.99));
  if (key == "live_load") {
    run.figure("live_load_client_late_p99_ms", "  the client behind its schedule, p99", "ms",
               phase.schedule().late().quantile(0.99));
  }
}

}  // namespace

void live_idle(Run& run) {
  const auto seconds = static_cast<std::size_t>(run.options.seconds.count());
  const auto events = run.events.make(kIdlePerSecondMax * seconds);
  live(run, events, Schedule::one_at_a_time(), "live_idle", "publish to live, one at a time");
}

void live_load(Run& run) {
  const auto rate = run.options.rate;
  const auto events = run.events.make(rate * static_cast<std::size_t>(run.options.seconds.count()));
  live(run, events, Schedule::at_rate(rate), "live_load",
       fmt::format("publish to live at {} events/s", rate));
}

void fanout(Run& run) {
  constexpr std::size_t kBurst = 300;
  constexpr std::size_t kBursts = 5;  // one alone depends on what else the machine does in that moment
  const auto subscribers = run.options.subscribers;
  Loop loop(run.options.deflate);
  Subscribing(run.result).run(loop, run, subscribers);
  loop.connect(run.url);
  std::vector<double> rates;
  for (std::size_t i = 0; i < kBursts; ++i) {
    const auto events = run.events.make(kBurst);
    Burst burst(events, subscribers, run.result);
    const Stopwatch watch;
    burst.run(loop);
    rates.push_back(static_cast<double>(burst.deliveries()) / watch.stop(run.result));
  }
  std::sort(rates.begin(), rates.end());
  run.figure("fanout_deliveries_per_s",
             fmt::format("fan-out to {} subscribers, bursts of {}", subscribers, kBurst), "deliveries/s",
             rates[kBursts / 2]);
}

}  // namespace todoke::bench

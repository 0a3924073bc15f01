// Cases with publishers alone: how fast events become durable, and how long an OK takes.
#include <fmt/format.h>

#include "relay_load/bare_insert.hpp"
#include "relay_load/cases.hpp"
#include "relay_load/publisher.hpp"

namespace todoke::bench {
namespace {

// Keeps `in_flight` events without an OK on every connection until all events are answered.
class Ingest final : public CaseReceiver {
 public:
  Ingest(Loop& loop, const EventSet& events, CaseResult& result)
      : CaseReceiver(result), loop_(loop), events_(events), ledger_(events, result) {}

  void run(std::size_t connections, std::size_t in_flight) {
    for (std::size_t i = 0; i < in_flight; ++i)
      for (std::size_t connection = 0; connection < connections; ++connection) send_next(connection);
    loop_.run(
        *this, [&] { return ledger_.settled() == events_.size(); }, [](SteadyTime) { return Loop::kNever; },
        [&] { return fmt::format("{} of {} events had an OK", ledger_.settled(), events_.size()); });
    ledger_.require_some();
  }
  [[nodiscard]] std::size_t accepted() const { return ledger_.accepted(); }

 private:
  bool on_ok(std::size_t connection, const Reply& reply) override {
    if (!ledger_.settle(reply)) return false;
    send_next(connection);
    return true;
  }
  void send_next(std::size_t connection) {
    if (sent_ < events_.size()) loop_.queue(connection, events_.frame(sent_++));
  }

  Loop& loop_;
  const EventSet& events_;
  Ledger ledger_;
  std::size_t sent_ = 0;
};

void ingest(Run& run, std::size_t connections) {
  const auto events = run.events.make(run.options.events);
  Loop loop;
  for (std::size_t i = 0; i < connections; ++i) loop.connect(run.url);
  Ingest publishers(loop, events, run.result);
  const Stopwatch watch;
  publishers.run(connections, run.options.in_flight);
  const double seconds = watch.stop(run.result);
  run.figure(fmt::format("ingest_{}_events_per_s", connections),
             fmt::format("durable ingest, {} connection{}", connections, connections == 1 ? "" : "s"),
             "events/s", static_cast<double>(publishers.accepted()) / seconds);
}

class OkLatency final : public CaseReceiver {
 public:
  OkLatency(const EventSet& events, Schedule schedule, CaseResult& result)
      : CaseReceiver(result), events_(events), schedule_(std::move(schedule)), ledger_(events, result) {}

  // Until all events are answered, or (one at a time) the time is up.
  void run(Loop& loop, std::size_t connection, std::chrono::seconds limit) {
    const Stopwatch watch;
    const auto is_over = [&] {
      if (ledger_.settled() < schedule_.sent()) return false;
      return schedule_.sent() == events_.size() || watch.seconds() >= static_cast<double>(limit.count());
    };
    loop.run(
        *this, is_over, [&](SteadyTime now) { return schedule_.step(now, loop, connection, events_); },
        [&] { return fmt::format("{} of {} events had an OK", ledger_.settled(), schedule_.sent()); });
    watch.stop(result());
    ledger_.require_some();
  }
  Latencies latencies;
  [[nodiscard]] Schedule& schedule() { return schedule_; }

 private:
  bool on_ok(std::size_t /*connection*/, const Reply& reply) override {
    const auto index = ledger_.settle(reply);
    if (!index) return false;
    if (ledger_.is_accepted(*index))
      latencies.add(std::chrono::steady_clock::now() - schedule_.since(*index));
    schedule_.settled();
    return true;
  }

  const EventSet& events_;
  Schedule schedule_;
  Ledger ledger_;
};

}  // namespace

void publish_before(Run& run, std::size_t count) {
  publish(run, run.events.make(count));
}

void publish(Run& run, const EventSet& events) {
  Loop loop;
  loop.connect(run.url);
  Ingest(loop, events, run.result).run(1, run.options.in_flight);
}

void warm_up(Run& run) {
  constexpr std::size_t kEvents = 500;
  publish_before(run, kEvents);
}

void ingest_1(Run& run) {
  ingest(run, 1);
}

void ingest_10(Run& run) {
  ingest(run, 10);
}

void ok_idle(Run& run) {
  const auto seconds = run.options.seconds;
  const auto events = run.events.make(kIdlePerSecondMax * static_cast<std::size_t>(seconds.count()));
  Loop loop;
  OkLatency publisher(events, Schedule::one_at_a_time(), run.result);
  publisher.run(loop, loop.connect(run.url), seconds);
  run.figure("ok_idle_p50_ms", "OK latency, one at a time, p50", "ms", publisher.latencies.quantile(0.5));
  run.figure("ok_idle_p99_ms", "OK latency, one at a time, p99", "ms", publisher.latencies.quantile(0.99));
}

void ok_gaps(Run& run) {
  const auto count = static_cast<std::size_t>(run.options.seconds / kGap);
  const auto events = run.events.make(count);
  Loop loop;
  OkLatency publisher(events, Schedule::with_gaps(), run.result);
  publisher.run(loop, loop.connect(run.url), run.options.seconds);
  const auto relay_p50 = publisher.latencies.quantile(0.5);
  run.figure("ok_gaps_p50_ms", "OK latency, 10 ms after the one before, p50", "ms", relay_p50);
  run.figure("ok_gaps_p99_ms", "OK latency, 10 ms after the one before, p99", "ms",
             publisher.latencies.quantile(0.99));
  if (run.options.database.empty()) return;
  auto bare = bare_inserts(run.options.database, count, run.options.event_bytes);
  run.figure("bare_insert_p50_ms", "  a bare durable INSERT likewise, p50", "ms", bare.quantile(0.5));
  run.figure("bare_insert_ratio", "  OK in times of it", "times", relay_p50 / bare.quantile(0.5));
}

void ok_load(Run& run) {
  const auto seconds = run.options.seconds;
  const auto rate = run.options.rate;
  const auto events = run.events.make(rate * static_cast<std::size_t>(seconds.count()));
  Loop loop;
  OkLatency publisher(events, Schedule::at_rate(rate), run.result);
  publisher.run(loop, loop.connect(run.url), seconds);
  const auto label = fmt::format("OK latency at {} events/s", rate);
  run.figure("ok_load_p50_ms", label + ", p50", "ms", publisher.latencies.quantile(0.5));
  run.figure("ok_load_p99_ms", label + ", p99", "ms", publisher.latencies.quantile(0.99));
  run.figure("ok_load_client_late_p99_ms", "  the client behind its schedule, p99", "ms",
             publisher.schedule().late().quantile(0.99));
}

}  // namespace todoke::bench

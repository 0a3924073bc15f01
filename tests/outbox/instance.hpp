// A consumer as if in a process of its own: its own loop, pool, listener and in-process signal.
#pragma once

#include <future>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "harness/http_rig.hpp"
#include "harness/metric.hpp"
#include "harness/test_database.hpp"
#include "outbox/runner.hpp"

namespace todoke::test {

// Short times, so that what takes seconds in production takes a moment here.
outbox::RunnerOptions quick();

struct InstanceOptions {
  outbox::RunnerOptions runner = quick();
  bool listens = true;            // for NOTIFY
  const Clock* clock = nullptr;   // null: the system's
  std::string name = "instance";  // of its connections
};

class Instance {
 public:
  // Runs when it returns.
  Instance(const TestDatabase& database, std::shared_ptr<outbox::Consumer> consumer,
           const InstanceOptions& options = {})
      : Instance(database.url(), std::move(consumer), options) {}
  Instance(const std::string& database_url, std::shared_ptr<outbox::Consumer> consumer,
           const InstanceOptions& options);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  // As a node does at SIGTERM; ask_to_stop() does not wait for the end.
  void stop();
  void ask_to_stop();
  // Its thread stands still until thaw(), as a process after SIGSTOP: nothing is renewed, nothing given back.
  void freeze();
  void thaw();

  [[nodiscard]] outbox::LogSignal& log() { return log_; }
  [[nodiscard]] Executor executor() const { return loop_.executor(); }
  // The value of a series such as todoke_consumer_rows_total{consumer="a"}; 0 when there is none.
  [[nodiscard]] double metric(const std::string& series) const;

 private:
  SystemClock system_clock_;
  const Clock& clock_;
  metrics::Registry registry_;
  outbox::LogSignal log_;
  net::test::Loop loop_;
  pg::Pool pool_;
  pg::Listener listener_;
  outbox::Runner runner_;
  std::future<void> listening_;
  std::future<void> running_;
  std::promise<void> thaw_;
  bool is_frozen_ = false;
  bool is_asked_to_stop_ = false;
};

}  // namespace todoke::test

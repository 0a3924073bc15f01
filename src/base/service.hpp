// The shape of every long-running part, and what keeps it running.
//
//   construct(config, dependencies) -> validate() -> start() -> run() ... stop() -> run() returns
//
// A service has a name that shows in health, logs and metrics. One that dies (run() or start() throws) is
// started again with backoff and shows as degraded meanwhile (down, when it has never been up). All calls
// come on one executor.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/async.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/metrics.hpp"

namespace todoke {

enum class HealthState { up, starting, degraded, down };

std::string_view to_string(HealthState state);

struct Health {
  HealthState state = HealthState::starting;
  std::string detail;  // for operators; shown on the internal listener only
};

// Every dependency and service with its state. Thread-safe.
class HealthBoard {
 public:
  struct Line {
    std::string name;
    bool essential = false;  // the node as a whole is not healthy while this one is starting or down
    Health health;
  };

  void report(const std::string& name, bool essential, Health health);
  void forget(const std::string& name);
  [[nodiscard]] std::vector<Line> lines() const;  // by name
  // down: an essential line is starting or down. degraded: any line is not up. up: all are.
  [[nodiscard]] HealthState overall() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Line> lines_;
};

class Service {
 public:
  virtual ~Service() = default;
  Service() = default;
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  [[nodiscard]] virtual std::string_view name() const = 0;
  // Whether the node is unhealthy without it.
  [[nodiscard]] virtual bool essential() const { return true; }
  // Checks the configuration, before anything is started.
  [[nodiscard]] virtual Expected<void> validate() const { return {}; }
  // Returns when the service serves. Throws when it can't; it is called again later then.
  virtual Task<void> start() = 0;
  // Returns after stop() took effect, with nothing left running. Throws when the service died.
  virtual Task<void> run() = 0;
  // Asks run() to return; takes effect also when it comes before run(). Called once.
  virtual void stop() = 0;
};

// Runs services in the order in which they were added; stops them in the opposite order, each wholly before
// the next.
class Supervisor {
 public:
  Supervisor(Executor executor, const Clock& clock, HealthBoard& board, metrics::Registry& registry);
  ~Supervisor();

  // `stops_first`: for what lets work in from outside. It is stopped before all others, wherever it stands.
  void add(std::shared_ptr<Service> service, bool stops_first = false);

  // Throws UserError that names the first service whose configuration is refused.
  void validate() const;
  // Starts the services one after the other, each as soon as the one before it is up, and returns when all
  // are up. One that fails to start with a UserError (what the person at the terminal must mend first) makes
  // it throw that; other failures are tried again until stop().
  Task<void> start();
  // Makes a start() that is under way return soon; stop() has to follow.
  void interrupt();
  // Stops everything, in the opposite order.
  Task<void> stop();

 private:
  struct Child;
  Task<void> supervise(std::shared_ptr<Child> child);

  Executor executor_;
  const Clock& clock_;
  HealthBoard& board_;
  metrics::Family<metrics::Counter>& restarts_;
  std::vector<std::shared_ptr<Child>> children_;
  bool stopping_ = false;
};

}  // namespace todoke

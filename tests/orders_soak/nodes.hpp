// The nodes of a run: processes with API and worker, each behind a network of its own to the database. The
// wall clock of one of them jumps.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "clients.hpp"
#include "harness/pg_proxy.hpp"
#include "orders/rig.hpp"

namespace todoke::test {

class Nodes {
 public:
  Nodes(const std::string& socket_folder, std::string database, Environment environment);

  [[nodiscard]] const Ports& ports() const { return ports_; }
  [[nodiscard]] PgProxy& proxy(std::size_t index) { return *slots_[index].proxy; }
  // The name of its sessions in pg_stat_activity.
  static bool clock_jumps(std::size_t index) { return index == kNodes - 1; }
  static std::string session_name(std::size_t index) { return "soak-" + std::to_string(index); }
  [[nodiscard]] std::optional<std::size_t> by_session(const std::string& name) const;
  // locked_by is host:pid:random.
  [[nodiscard]] std::optional<std::size_t> by_worker(const std::string& locked_by) const;

  // Starts it unless it runs; await() waits until it is ready.
  void start(std::size_t index);
  void await(std::size_t index);
  void kill(std::size_t index);
  // SIGTERM, and to the end.
  void stop(std::size_t index);
  // SIGSTOP until the time has come; resume_due() lets those go on for whom it has, thaw() waits for it.
  void freeze(std::size_t index, std::chrono::milliseconds time);
  void resume(std::size_t index);
  void resume_due();
  void thaw();
  [[nodiscard]] bool is_ready(std::size_t index) const { return slots_[index].is_ready; }
  [[nodiscard]] bool is_frozen(std::size_t index) const { return slots_[index].frozen_until.has_value(); }
  // All that are not frozen run and are ready.
  void revive();

  [[nodiscard]] int starts() const { return starts_; }
  // Every worker that ever was, with the name of its sessions; the worker as by_worker knows it.
  struct Identity {
    std::string session;
    std::string worker;
    bool clock_jumps;
  };
  [[nodiscard]] const std::vector<Identity>& identities() const { return identities_; }
  [[nodiscard]] std::string worker(std::size_t index) const { return slots_[index].node->worker(); }
  // Nodes that ended though nobody killed them, with the end of what they said.
  [[nodiscard]] const std::string& surprises() const { return surprises_; }

 private:
  struct Slot {
    std::unique_ptr<PgProxy> proxy;
    std::unique_ptr<OrderNode> node;
    bool is_ready = false;
    std::optional<std::chrono::steady_clock::time_point> frozen_until = {};
  };
  void look_for_surprises(std::size_t index);

  std::string database_;
  Environment environment_;
  std::vector<Slot> slots_;
  Ports ports_{};
  int starts_ = 0;
  std::vector<Identity> identities_;
  std::string surprises_;
};

}  // namespace todoke::test

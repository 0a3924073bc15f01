// One run: three nodes, clients, a broker and a seed that decides what goes wrong, when, and for whom.
//
// A run repeats the choices of its seed; when a process gets to a place is the machine's choice, so a
// repeated run is the same kind of trouble and not the same schedule.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "broker.hpp"
#include "clients.hpp"
#include "link.hpp"
#include "nodes.hpp"
#include "server.hpp"

namespace todoke::test {

// The kill list: how often a process or the server was killed right there.
using KillCount = std::map<int, int>;
inline constexpr int kKillPoints = 12;

class SoakRun {
 public:
  SoakRun(SoakServer& server, std::uint64_t seed);
  ~SoakRun();
  SoakRun(const SoakRun&) = delete;
  SoakRun& operator=(const SoakRun&) = delete;

  // Load and faults, one of them at the kill point that the seed's remainder names; then quiet, until
  // everything is settled or the bound has passed.
  void play();
  // What is broken; empty: nothing.
  std::string problems();

  [[nodiscard]] const KillCount& kills() const { return kills_; }
  [[nodiscard]] const std::string& story() const { return story_; }

 private:
  struct Waiter {
    std::string pid;      // of the backend
    std::string session;  // application_name: whose it is
  };

  [[nodiscard]] Environment environment();
  void tell(const std::string& what) { story_ += (story_.empty() ? "" : ", ") + what; }
  void pause(int ms_min, int ms_max);
  // Between two looks; draws nothing.
  static void rest();
  std::size_t any_node();

  // faults.cpp: what needs no place.
  void fault();
  void outage();
  void requeue();
  void lose_answers(const std::string& statement, std::size_t index);

  // kill_points.cpp: K1 to K12.
  void kill_point(int number);
  void try_kill_point(int number);
  void kill_at_gate(int number, int gate, const std::function<void()>& provoke = {});
  void kill_unseen(int number, const std::string& statement);
  void kill_at_broker(int number, Broker::Moment moment);
  void kill_taker();
  void kill_archiver();
  void kill_partitioner();
  std::optional<Waiter> await_waiter(const std::string& lock_condition);
  void hurt(int number, const Waiter& waiter);

  void watch();
  bool is_settled();
  void write_down();

  SoakServer& server_;
  const std::uint64_t seed_;
  const std::string database_;
  Random random_;
  Link link_;
  Link gate_;
  Broker broker_;
  std::unique_ptr<Nodes> nodes_;
  std::unique_ptr<Clients> clients_;
  std::atomic<bool> watching_ = true;
  std::string seen_;  // what the watcher found; read after it has ended
  std::thread watcher_;
  std::string story_;
  std::string outage_problems_;
  int extra_keys_ = 0;
  KillCount kills_;
};

}  // namespace todoke::test

// One run: three nodes, clients, a broker and a seed that decides what goes wrong, when, and for whom.
//
// A run repeats the choices of its seed; when a process gets to a place is the machine's choice, so a
// repeated run is the same kind of trouble and not the same schedule.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "broker.hpp"
#include "clients.hpp"
#include "link.hpp"
#include "nodes.hpp"
#include "server.hpp"

namespace todoke::test {

inline constexpr int kKillPoints = 12;
// How often a place of trouble was really reached: points of the kill list (something was killed right
// there), and set pieces.
using Reached = std::map<std::string, int>;
// All that there are.
std::vector<std::string> places();

class SoakRun {
 public:
  SoakRun(SoakServer& server, std::uint64_t seed);
  ~SoakRun();
  SoakRun(const SoakRun&) = delete;
  SoakRun& operator=(const SoakRun&) = delete;

  // Load and three faults: the kill point and the set piece that the seed's remainders name, and any other.
  // Then quiet, until everything is settled or the bound has passed.
  void play();
  // What is broken; empty: nothing.
  std::string problems();
  [[nodiscard]] const std::string& missed() const { return missed_; }

  [[nodiscard]] const Reached& reached() const { return reached_; }
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
  void fill_disk();
  void requeue();
  void lose_answers(const std::string& statement, std::size_t index);

  // zombies.cpp
  struct Hands {
    std::size_t index;
    std::string worker;
    std::string tickets;  // (id,claim_no),...
    std::set<std::string> keys;
    std::string at_broker;  // keys of those, quoted
  };
  bool await(const std::string& condition, std::chrono::milliseconds most);
  std::optional<Hands> stop_with_full_hands();
  // Until another has one of its orders, which the broker keeps waiting.
  std::optional<Hands> stop_until_taken();
  void await_noticed(const Hands& hands);
  void zombie();
  void zombie_of_itself();

  void set_piece();

  // kill_points.cpp: K1 to K12.
  void kill_point(int number);
  void try_kill_point(int number);
  void kill_at_gate(int number, int gate, const std::function<void()>& provoke = {});
  void kill_unseen(int number, const std::string& statement);
  void kill_at_broker(int number, Broker::Moment moment);
  void kill_taker();
  void kill_archiver();
  void kill_partitioner();
  void kill_starting(const std::string& lock_condition);
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
  std::string problems_;  // what faults have found
  std::string missed_;    // kill points that the run was to reach
  int extra_keys_ = 0;
  bool can_find_ = false;
  Reached reached_;
};

}  // namespace todoke::test

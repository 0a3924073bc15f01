// Random load on the log: writers that pause and roll back. Every choice comes from a seed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "relay/rig.hpp"

namespace todoke::test {

using Random = std::mt19937_64;

// From low to high, both included.
int pick(Random& random, int low, int high);
// A statement that takes up to `ms_max`.
std::string pause(Random& random, int ms_max);
bool chance(Random& random, int percent);

// A connection that comes back when it was cut.
class Link {
 public:
  explicit Link(std::string url) : url_(std::move(url)) {}
  // The rows of a statement; nothing when it failed, for whatever reason.
  std::optional<Rows> run(const std::string& statement);

 private:
  std::string url_;
  std::optional<SqlSession> session_;
};

enum class Way {
  table,      // plain INSERT into the log
  partition,  // straight into the partition that is written
  lock,       // the lock first, as the relay does
};

// Each until `stop`.
void write_by_sql(const std::string& url, Way way, int writer, Random random, const std::atomic<bool>& stop);
void write_through_relay(const std::string& relay_url, Random random, const std::atomic<bool>& stop);

// Threads that are joined at the end.
class Threads {
 public:
  ~Threads() { join(); }
  void add(std::function<void()> work) { threads_.emplace_back(std::move(work)); }
  void join() {
    for (auto& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  std::vector<std::thread> threads_;
};

}  // namespace todoke::test

// Clients that post orders again and again, to any node: new keys, old keys, and old keys with another body.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "draw.hpp"

namespace todoke::test {

// Where nodes listen; 0: not there now.
inline constexpr std::size_t kNodes = 3;
using Ports = std::array<std::atomic<std::uint16_t>, kNodes>;

struct Post {
  std::string key;
  int qty = 0;
  int status = 0;                              // 0: no answer
  std::chrono::system_clock::time_point at{};  // when the answer was there
};

// The status; 0 when no answer came.
int post_order(std::uint16_t port, const std::string& key, int qty);

class Clients {
 public:
  Clients(std::uint64_t seed, const Ports& ports);
  ~Clients() { stop(); }
  Clients(const Clients&) = delete;
  Clients& operator=(const Clients&) = delete;

  // A post of the test's own, once, to any node.
  int post(const std::string& key, int qty);
  void stop();
  std::vector<Post> posts();

 private:
  void work(Random random);
  int post_to(std::uint16_t port, const std::string& key, int qty);

  const Ports& ports_;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> keys_ = 0;
  std::mutex mutex_;
  std::vector<Post> posts_;
  std::vector<std::thread> threads_;
};

}  // namespace todoke::test

#include "clients.hpp"

#include <poll.h>
#include <stdexcept>

#include <fmt/format.h>

#include "harness/http_rig.hpp"

namespace todoke::test {
namespace {

constexpr std::uint64_t kClients = 3;
// Keys that are still posted again.
constexpr int kWindow = 12;
constexpr int kPauseMsMax = 25;

}  // namespace

int post_order(std::uint16_t port, const std::string& key, int qty) {
  const auto body = fmt::format(
      R"({{"instrument":"BTC-USD","side":"BUY","qty":{},"price":10.5,"idempotency_key":"{}"}})", qty, key);
  const auto headers = fmt::format("Content-Type: application/json\r\nIdempotency-Key: {}\r\n", key);
  try {
    net::test::RawClient client(port);
    return client.ask(net::test::post("/do/order", body, headers)).status;
  } catch (const std::runtime_error&) {
    return 0;
  }
}

Clients::Clients(std::uint64_t seed, const Ports& ports) : ports_(ports) {
  for (std::uint64_t i = 0; i < kClients; ++i) {
    threads_.emplace_back([this, random = Random(seed * kClients + i)] { work(random); });
  }
}

void Clients::work(Random random) {
  while (!stopping_) {
    ::poll(nullptr, 0, pick(random, 1, kPauseMsMax));
    const auto number = chance(random, 50) ? keys_++ : std::max(0, keys_ - pick(random, 1, kWindow));
    const auto key = fmt::format("soak-key-{}", number);
    const int qty = chance(random, 85) ? 1 : 2;
    const auto port = ports_[static_cast<std::size_t>(pick(random, 0, kNodes - 1))].load();
    if (port != 0) post_to(port, key, qty);
  }
}

int Clients::post(const std::string& key, int qty) {
  for (const auto& port : ports_) {
    if (port == 0) continue;
    if (const auto status = post_to(port, key, qty); status != 0) return status;
  }
  return 0;
}

int Clients::post_to(std::uint16_t port, const std::string& key, int qty) {
  const auto status = post_order(port, key, qty);
  const auto now = std::chrono::system_clock::now();
  const std::lock_guard lock(mutex_);
  posts_.push_back({key, qty, status, now});
  return status;
}

void Clients::stop() {
  stopping_ = true;
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

std::vector<Post> Clients::posts() {
  const std::lock_guard lock(mutex_);
  return posts_;
}

}  // namespace todoke::test

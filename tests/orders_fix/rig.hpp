// A worker's side of a FIX session in the test's process: link, adapter and watch on a loop of their own,
// with a broker and a database.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker.hpp"
#include "harness/await.hpp"
#include "harness/test_database.hpp"
#include "orders/brokers/fix/watch.hpp"
#include "orders/core/order.hpp"

namespace todoke::test {

using namespace std::chrono_literals;
using orders::FindAnswer;
using orders::TimeInForce;

// The system's clock, and later where a test says so.
class LaterClock final : public Clock {
 public:
  [[nodiscard]] SystemTime now() const override { return std::chrono::system_clock::now() + offset_.load(); }
  [[nodiscard]] SteadyTime steady() const override {
    return std::chrono::steady_clock::now() + offset_.load();
  }
  void advance(std::chrono::nanoseconds by) { offset_ = offset_.load() + by; }

 private:
  std::atomic<std::chrono::nanoseconds> offset_{std::chrono::nanoseconds(0)};
};

// As long as an order that nobody answers waits: it is at the broker by then on a busy machine too.
inline constexpr std::chrono::milliseconds kSilence(1'000);

class FixSide {
 public:
  FixSide(const TestDatabase& database, int port, const std::string& worker = "host:1:aa",
          const std::function<void(orders::FixOptions&)>& change = {},
          orders::FixPauses repeats = {30s, 60s});
  ~FixSide();  // stops as at SIGTERM
  FixSide(const FixSide&) = delete;
  FixSide& operator=(const FixSide&) = delete;

  void await_logon();
  // Its clock, not the broker's.
  void advance(std::chrono::nanoseconds by) { clock_.advance(by); }
  [[nodiscard]] bool can_send_now();
  [[nodiscard]] double metric(const std::string& series) const;
  [[nodiscard]] std::string health() const;

  orders::SendOutcome send(const orders::SendRequest& request, std::chrono::milliseconds limit = 10s);
  orders::FindOutcome find(const orders::SendRequest& request, std::chrono::milliseconds limit = 10s);
  [[nodiscard]] orders::FixAdapter& adapter() { return *adapter_; }
  void stop();

 private:
  template <class Value>
  Value call(Task<Value> task);
  // `then` when it has ended.
  void run(Service& service, std::function<void()> then);

  LaterClock clock_;
  HealthBoard health_;
  metrics::Registry metrics_;
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> guard_{io_.get_executor()};
  std::unique_ptr<pg::Pool> pool_;
  std::shared_ptr<orders::FixLink> link_;
  std::unique_ptr<orders::FixAdapter> adapter_;
  std::unique_ptr<orders::FixWatch> watch_;
  std::thread thread_;
  bool stopped_ = false;
};

class FixTest : public testing::Test {
 protected:
  // An order of 2 BTC-USD at 10.5. It has a row in the outbox and in the ledger.
  orders::SendRequest order(const std::string& key, TimeInForce time_in_force = TimeInForce::ioc,
                            const std::string& status = "sending");
  std::unique_ptr<FixSide> side(const std::string& worker = "host:1:aa",
                                const std::function<void(orders::FixOptions&)>& change = {});
  void run(const std::string& sql) { database.execute(sql); }
  std::string value(const std::string& sql);
  void await(const std::string& sql, const std::string& wanted);

  TestDatabase database;
  Broker broker;

 private:
  std::map<std::string, orders::Order> orders_;
};

}  // namespace todoke::test

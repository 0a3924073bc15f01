// Order workers as processes, and the database that they share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/sql_session.hpp"
#include "harness/test_database.hpp"
#include "harness/todoke_process.hpp"

namespace todoke::test {

using Environment = std::vector<std::string>;

// For a worker whose orders may wait at the broker: none times out, and no lease lapses.
inline const Environment kPatient{"BROKER_TIMEOUT_MS=60000", "OUTBOX_LOCK_LEASE_SEC=90"};

// `todoke run --roles orders` with a worker, on a database of the test's. Retries come at once and leases are
// short unless the environment says otherwise; a name without a value in it takes such a default away.
class OrderNode : public TodokeRun {
 public:
  OrderNode(const TestDatabase& database, const Environment& environment)
      : OrderNode(database.url(), environment) {}
  OrderNode(const std::string& database_url, const Environment& environment);

  // The beginning of its locked_by, up to the random part.
  [[nodiscard]] std::string worker();
  [[nodiscard]] std::string public_url() { return "http://" + public_address(); }
};

class OrdersTest : public testing::Test {
 protected:
  // As the API does: ledger accepted and outbox pending, then a word to the workers.
  void accept(const std::string& key, const std::string& instrument = "BTC-USD",
              const std::string& time_in_force = "IOC");
  // Runs when it returns.
  std::unique_ptr<OrderNode> node(const Environment& environment = {});
  std::string value(const std::string& sql) { return database.value(sql); }
  void run(const std::string& sql) { database.run(sql); }
  // Waits until the only value is `wanted`.
  void await(const std::string& sql, const std::string& wanted);
  void await_status(const std::string& key, const std::string& status);
  // A column of the order's row, or of its ledger row.
  std::string of(const std::string& key, const std::string& column);
  std::string ledger(const std::string& key, const std::string& column);
  // What is wrong between outbox and ledger, a line for each; empty when they agree.
  std::string disagreements();
  void TearDown() override { EXPECT_EQ(disagreements(), ""); }

  TestDatabase test_database;
  SqlSession database{test_database.url()};
};

// Keeps the paper broker from answering: orders that are sent wait at its book. Its timeout has to be long.
class PaperHold {
 public:
  explicit PaperHold(const TestDatabase& database);
  // Waits until so many orders are at the broker.
  void await_orders(int count);
  void release();

 private:
  SqlSession session_;
};

// A command of `todoke` on the test's database.
Exit todoke_on(const TestDatabase& database, std::vector<std::string> arguments);

}  // namespace todoke::test

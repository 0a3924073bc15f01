// What the tests of the index share: a database, events written by hand, and the consumer called as the
// runner does.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.hpp"
#include "base/metrics.hpp"
#include "harness/run_task.hpp"
#include "harness/test_database.hpp"
#include "index/index_consumer.hpp"
#include "index/search.hpp"
#include "pg/pool.hpp"

namespace todoke::index {

using test::run_task;
using namespace std::chrono_literals;

inline Deadline soon() {
  return Deadline::after(30s);
}

struct Written {
  std::string content = "hello";
  std::int32_t kind = 1;
  std::vector<std::string> topics{"kukuri:global"};
  std::int64_t created_at = 1'700'000'000;
  std::string tags_json = "[]";
  bool non_public = false;
  char author = 'a';  // one hex digit, 64 times
};

class Rig {
 public:
  Rig();

  // Stores the event and appends an upsert for each of its topics. Gives its id.
  std::string write(const Written& event);
  void upsert(const std::string& id, const std::string& topic = "kukuri:global");
  // Marks the event as deleted and appends a delete for each of its topics.
  void retire(const std::string& id);
  void sql(const std::string& script) const { db_.execute(script); }

  // Applies the rows that have come since the last call, all in one batch.
  void apply();
  void apply_from(std::int64_t seq);
  void rebuild_and_swap();

  Expected<SearchPage> page(SearchQuery query);
  // The contents of what is found, the best first.
  std::vector<std::string> find_by(SearchQuery query);
  std::vector<std::string> find(const std::string& text);
  // The first column of the only row, as text.
  std::string one(const std::string& select);

  pg::Pool& pool() { return pool_; }
  [[nodiscard]] const std::string& url() const { return db_.url(); }
  ManualClock& clock() { return clock_; }
  IndexConsumer& consumer() { return consumer_; }
  Task<void> apply_rows(std::int64_t from);
  Task<void> rebuild_and_swap_now();

  std::vector<std::pair<std::int64_t, std::int64_t>> progress;  // done and total, as the rebuild told

 private:
  test::TestDatabase db_;
  ManualClock clock_;
  metrics::Registry registry_;
  pg::Pool pool_;
  IndexConsumer consumer_;
  std::int64_t written_ = 0;
  std::int64_t last_seq_ = 0;
};

class IndexTest : public ::testing::Test {
 protected:
  Rig rig_;
};

}  // namespace todoke::index

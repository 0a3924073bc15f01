// What the tests of the log share: a database with a log to write, and short forms to look at it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumers.hpp"
#include "harness/run_task.hpp"
#include "instance.hpp"
#include "outbox/admin.hpp"
#include "relay/rig.hpp"

namespace todoke::test {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Seqs = std::vector<std::int64_t>;

inline Deadline soon() {
  return Deadline::after(30s);
}

// from, from + 1 … to
Seqs numbers(std::int64_t from, std::int64_t to);

class LogTest : public testing::Test {
 protected:
  LogTest();

  // Stores that many events, each with its row of the log; the last seq. The id of an event is id_of(its
  // seq).
  std::int64_t append(int events);
  static std::string id_of(std::int64_t seq);
  // Rows of one event: `more` rows for further topics, or its delete.
  void append_row(std::int64_t of_seq, const std::string& op, const std::string& topic,
                  const std::string& reason = "");

  [[nodiscard]] Seqs log();
  // The seqs of the effects of a consumer, in the order in which they were made.
  [[nodiscard]] Seqs effects(const std::string& consumer);
  [[nodiscard]] std::int64_t offset(const std::string& consumer);
  [[nodiscard]] std::int64_t number(const std::string& statement);
  [[nodiscard]] std::string text(const std::string& statement);
  // Waits until the consumer's offset is the end of the log; fails the test when it does not get there.
  void await_end(const std::string& consumer);
  void await_true(const std::string& statement);
  // Before a consumer runs: its row, with the columns that everybody knows.
  void add_offset(const std::string& consumer, std::int64_t last_seq, bool mandatory = false);

  [[nodiscard]] pg::ConnectOptions connect_options() const {
    pg::ConnectOptions options;
    options.url = db->url();
    return options;
  }

  // Runs a call of the admin interface, such as [](auto& c) { return outbox::set_paused(c, "a", true,
  // soon()); }.
  template <class Call>
  auto ask(Call call) {
    return run_task([this, call]() -> decltype(call(std::declval<pg::Connection&>())) {
      const auto connection = co_await db->connect();
      co_return co_await call(*connection);
    });
  }

  DatabasePtr db = std::make_shared<TestDatabase>();
  SqlSession sql{db->url()};
};

}  // namespace todoke::test

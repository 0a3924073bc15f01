#include "pg/copy.hpp"

#include <fmt/format.h>

#include "pg/support.hpp"

namespace todoke::pg {
namespace {

constexpr int kRows = 100'000;
constexpr Statement kCopyIn{"copy_in", "COPY t FROM STDIN"};
constexpr Statement kCopyOut{"copy_out", "COPY (SELECT n, word FROM t ORDER BY n) TO STDOUT"};

using Take = std::function<Task<void>(std::string_view)>;

class Copy : public testing::Test {
 protected:
  Copy() { db_.execute("CREATE TABLE t (n int PRIMARY KEY, word text)"); }
  TestDatabase db_;
};

Task<void> append(std::string& all, std::string_view piece) {
  all.append(piece);
  co_return;
}

TEST_F(Copy, ManyRowsGoInAndComeOutTheSame) {
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    std::string sent;
    auto copy = co_await CopyIn::start(*connection, kCopyIn, soon());
    for (int i = 0; i < kRows; ++i) {
      const auto row = fmt::format("{}\tword {}\n", i, i);
      sent += row;
      co_await copy.write(row);
    }
    EXPECT_EQ(co_await copy.finish(), kRows);

    std::string received;
    const auto rows = co_await copy_out(
        *connection, kCopyOut, [&received](std::string_view piece) { return append(received, piece); },
        soon());
    EXPECT_EQ(rows, kRows);
    EXPECT_TRUE(received == sent);
    EXPECT_TRUE(connection->usable());
  });
}

TEST_F(Copy, OneLargePieceIsSentWhole) {
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    std::string all;
    for (int i = 0; i < kRows; ++i) all += fmt::format("{}\t{}\n", i, std::string(100, 'x'));
    auto copy = co_await CopyIn::start(*connection, kCopyIn, soon());
    co_await copy.write(all);
    EXPECT_EQ(co_await copy.finish(), kRows);
  });
}

TEST_F(Copy, ABadRowIsATypedErrorAndNothingStays) {
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    auto copy = co_await CopyIn::start(*connection, kCopyIn, soon());
    co_await copy.write("1\ta\nnot a number\tb\n");
    std::string sqlstate;
    try {
      co_await copy.finish();
    } catch (const Error& error) {
      sqlstate = error.sqlstate();
    }
    EXPECT_EQ(sqlstate, "22P02");
    EXPECT_EQ(co_await count(*connection), 0);
  });
}

TEST_F(Copy, AMissingTableIsATypedError) {
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    std::string sqlstate;
    try {
      co_await CopyIn::start(*connection, {"copy_nowhere", "COPY nowhere FROM STDIN"}, soon());
    } catch (const Error& error) {
      sqlstate = error.sqlstate();
    }
    EXPECT_EQ(sqlstate, "42P01");
    EXPECT_TRUE(connection->usable());
  });
}

TEST_F(Copy, APassedDeadlineEndsTheCopyOnTheServer) {
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    auto copy = co_await CopyIn::start(*connection, kCopyIn, Deadline::after(100ms));
    bool late = false;
    try {
      for (int i = 0;; ++i) co_await copy.write(fmt::format("{}\tx\n", i));
    } catch (const DeadlineExceeded&) {
      late = true;
    }
    EXPECT_TRUE(late);
    EXPECT_TRUE(connection->usable());
    EXPECT_EQ(co_await count(*connection), 0);
  });
}

TEST_F(Copy, APassedDeadlineEndsACopyOut) {
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    std::string all;
    bool late = false;
    try {
      const Take take = [&all](std::string_view piece) { return append(all, piece); };
      co_await copy_out(*connection, {"slow_copy", "COPY (SELECT pg_sleep(60)) TO STDOUT"}, take,
                        Deadline::after(50ms));
    } catch (const DeadlineExceeded&) {
      late = true;
    }
    EXPECT_TRUE(late);
    EXPECT_TRUE(connection->usable());
  });
}

Task<void> refuse_piece(std::string_view) {
  throw std::runtime_error("enough");
  co_return;
}

TEST_F(Copy, AReaderThatThrowsStopsTheCopy) {
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    std::string message;
    try {
      const Take take = refuse_piece;
      co_await copy_out(*connection, {"endless", "COPY (SELECT generate_series(1, 1000000000)) TO STDOUT"},
                        take, soon());
    } catch (const std::runtime_error& error) {
      message = error.what();
    }
    EXPECT_EQ(message, "enough");
    EXPECT_TRUE(connection->usable());
    EXPECT_EQ(co_await count(*connection), 0);
  });
}

TEST_F(Copy, ACopyThatWasDroppedLeavesAConnectionForClosingOnly) {
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    {
      auto dropped = co_await CopyIn::start(*connection, kCopyIn, soon());
      co_await dropped.write("1\ta\n");
    }
    EXPECT_FALSE(connection->usable());
  });
}

TEST_F(Copy, ATerminatedBackendIsALostConnection) {
  run_task([&]() -> Task<void> {
    const auto admin = co_await db_.connect();
    const auto connection = co_await db_.connect();
    auto copy = co_await CopyIn::start(*connection, kCopyIn, soon());
    co_await terminate(*admin, connection->backend_pid());
    bool lost = false;
    try {
      for (int i = 0;; ++i) co_await copy.write(fmt::format("{}\tx\n", i));
    } catch (const ConnectionLost&) {
      lost = true;
    }
    EXPECT_TRUE(lost);
    EXPECT_EQ(co_await count(*admin), 0);
  });
}

}  // namespace
}  // namespace todoke::pg

#include <boost/asio/ip/tcp.hpp>

#include "base/error.hpp"
#include "harness/pg_proxy.hpp"
#include "pg/support.hpp"
#include "pg/transaction.hpp"

namespace todoke::pg {
namespace {

constexpr Statement kInsert{"insert", "INSERT INTO t (n) VALUES ($1)"};
constexpr Statement kTakeLock{"take_lock", "SELECT pg_advisory_lock(1)"};

// Expects `work` to throw an E and gives its message.
template <class E>
Task<std::string> message_of(Task<void> work) {
  try {
    co_await std::move(work);
  } catch (const E& error) {
    co_return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  co_return "";
}

Task<void> run_query(Connection& connection, Statement statement, Params params, Deadline deadline) {
  co_await connection.query(statement, std::move(params), deadline);
}

Task<void> run_batch(Connection& connection, Batch batch, Deadline deadline) {
  co_await connection.run(std::move(batch), deadline);
}

Task<void> connect_and_close(ConnectOptions options, Deadline deadline) {
  co_await Connection::connect(std::move(options), deadline);
}

class ConnectionTest : public testing::Test {
 protected:
  ConnectionTest() { db_.execute("CREATE TABLE t (n int PRIMARY KEY CHECK (n < 100))"); }
  TestDatabase db_;
};

TEST_F(ConnectionTest, ServerErrorsCarryTheirSqlstate) {
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    co_await connection->query(kInsert, {1}, soon());
    std::optional<Error> error;
    try {
      co_await connection->query(kInsert, {1}, soon());
    } catch (const Error& caught) {
      error = caught;
    }
    if (!error) throw std::runtime_error("the duplicate was taken");
    EXPECT_TRUE(error->is_unique_violation());
    EXPECT_EQ(error->constraint(), "t_pkey");
    EXPECT_EQ(error->fields().table, "t");
    EXPECT_EQ(error->fields().statement, "insert");
    // The key's value stays out of what is logged.
    EXPECT_EQ(std::string(error->what()).find("(1)"), std::string::npos);
    EXPECT_NE(error->fields().detail.find("(1)"), std::string::npos);
    EXPECT_TRUE(connection->usable());
    EXPECT_EQ(co_await count(*connection), 1);
  });
}

TEST_F(ConnectionTest, AStatementThatCantBePreparedIsTriedAnewTheNextTime) {
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    constexpr Statement kLater{"later", "SELECT count(*) FROM later"};
    co_await message_of<Error>(run_query(*connection, kLater, {}, soon()));
    co_await connection->execute_script("CREATE TABLE later ()", soon());
    const auto result = co_await connection->query(kLater, {}, soon());
    EXPECT_EQ(result.one().get<std::int64_t>(0), 0);
  });
}

TEST_F(ConnectionTest, StatementsArePreparedOnce) {
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    for (int i = 0; i < 5; ++i) co_await connection->query(kInsert, {i}, soon());
    constexpr Statement kPrepared{"prepared",
                                  "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'insert%'"};
    const auto result = co_await connection->query(kPrepared, {}, soon());
    EXPECT_EQ(result.one().get<std::int64_t>(0), 1);
  });
}

TEST_F(ConnectionTest, ABatchHappensWhollyOrNotAtAll) {
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    Batch good;
    good.add(kInsert, {1}).add(kInsert, {2}).add(kCount);
    const auto results = co_await connection->run(std::move(good), soon());
    EXPECT_EQ(results.size(), 3u);
    EXPECT_EQ(results[0].affected(), 1);
    EXPECT_EQ(results[2].one().get<std::int64_t>(0), 2);

    Batch bad;
    bad.add(kInsert, {3}).add(kInsert, {1000}).add(kInsert, {4});
    std::optional<Error> error;
    try {
      co_await connection->run(std::move(bad), soon());
    } catch (const Error& caught) {
      error = caught;
    }
    if (!error) throw std::runtime_error("the bad batch went through");
    EXPECT_TRUE(error->is_check_violation());
    EXPECT_EQ(error->index(), 1u);
    EXPECT_TRUE(connection->usable());
    EXPECT_FALSE(connection->in_transaction());
    EXPECT_EQ(co_await count(*connection), 2);
  });
}

TEST_F(ConnectionTest, AFailureAtCommitHasTheIndexAfterTheLastStatement) {
  db_.execute("CREATE TABLE d (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)");
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    constexpr Statement kInsertDeferred{"insert_deferred", "INSERT INTO d VALUES ($1)"};
    for (const auto mode : {Batch::Mode::transaction, Batch::Mode::plain}) {
      Batch batch(mode);
      batch.add(kInsertDeferred, {1}).add(kInsertDeferred, {1});
      std::optional<Error> error;
      try {
        co_await connection->run(std::move(batch), soon());
      } catch (const Error& caught) {
        error = caught;
      }
      if (!error) throw std::runtime_error("the duplicate was committed");
      EXPECT_TRUE(error->is_unique_violation());
      EXPECT_EQ(error->index(), mode == Batch::Mode::transaction ? 2u : 1u);
      EXPECT_TRUE(connection->usable());
      EXPECT_FALSE(connection->in_transaction());
    }
  });
}

TEST_F(ConnectionTest, ALargeBatchDoesNotLockUpBothEnds) {
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    constexpr Statement kEcho{"echo", "SELECT repeat($1, 2)"};
    const std::string text(1'000'000, 'x');
    Batch batch;
    for (int i = 0; i < 40; ++i) batch.add(kEcho, {text});
    const auto results = co_await connection->run(std::move(batch), soon());
    EXPECT_EQ(results.back().one().get<std::string_view>(0).size(), 2 * text.size());
  });
}

TEST_F(ConnectionTest, APassedDeadlineCancelsOnTheServerAndLeavesTheConnectionUsable) {
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    const auto admin = co_await db_.connect();
    co_await message_of<DeadlineExceeded>(run_query(*connection, kSleep, {60.0}, Deadline::after(50ms)));
    EXPECT_TRUE(connection->usable());
    co_await wait_until(
        *admin,
        "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND "
        "query LIKE '%pg_sleep(%' AND state = 'active' AND pid <> pg_backend_pid())");
    const auto result = co_await connection->query(kOne, {}, soon());
    EXPECT_EQ(result.one().get<std::int32_t>(0), 1);
  });
}

TEST_F(ConnectionTest, ABatchPastItsDeadlineIsRolledBack) {
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    Batch batch;
    batch.add(kInsert, {1}).add(kSleep, {60.0});
    co_await message_of<DeadlineExceeded>(run_batch(*connection, std::move(batch), Deadline::after(50ms)));
    EXPECT_TRUE(connection->usable());
    EXPECT_FALSE(connection->in_transaction());
    EXPECT_EQ(co_await count(*connection), 0);
  });
}

TEST_F(ConnectionTest, AScriptPastItsDeadlineIsCancelled) {
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    auto script =
        connection->execute_script("INSERT INTO t VALUES (1); SELECT pg_sleep(60)", Deadline::after(50ms));
    co_await message_of<DeadlineExceeded>(std::move(script));
    EXPECT_EQ(co_await count(*connection), 0);
  });
}

TEST_F(ConnectionTest, NothingIsSentAfterTheDeadline) {
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    co_await message_of<DeadlineExceeded>(run_query(*connection, kInsert, {1}, Deadline::after(0ms)));
    EXPECT_EQ(co_await count(*connection), 0);
  });
}

TEST_F(ConnectionTest, TwoCallsAtOnceAreAProgrammingError) {
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    const auto admin = co_await db_.connect();
    Beside sleeper(co_await asio::this_coro::executor,
                   run_query(*connection, kSleep, {60.0}, Deadline::after(200ms)));
    co_await wait_until_stuck(*admin, connection->backend_pid());
    co_await message_of<std::logic_error>(run_query(*connection, kOne, {}, soon()));
    co_await message_of<DeadlineExceeded>(sleeper.join());
  });
}

TEST_F(ConnectionTest, ATerminatedBackendIsALostConnectionInEveryKindOfCall) {
  run_task([&]() -> Task<void> {
    const auto admin = co_await db_.connect();
    const auto executor = co_await asio::this_coro::executor;
    for (int kind = 0; kind < 4; ++kind) {
      const auto connection = co_await db_.connect();
      Batch batch(kind == 1 ? Batch::Mode::transaction : Batch::Mode::plain);
      batch.add(kInsert, {kind}).add(kSleep, {60.0});
      Task<void> call = kind == 0   ? run_query(*connection, kSleep, {60.0}, soon())
                        : kind == 3 ? connection->execute_script("SELECT pg_sleep(60)", soon())
                                    : run_batch(*connection, std::move(batch), soon());
      Beside victim(executor, std::move(call));
      co_await wait_until_stuck(*admin, connection->backend_pid());
      co_await terminate(*admin, connection->backend_pid());
      const auto message = co_await message_of<ConnectionLost>(victim.join());
      EXPECT_NE(message.find("administrator command"), std::string::npos) << message;
      EXPECT_FALSE(connection->usable());
      co_await message_of<ConnectionLost>(run_query(*connection, kOne, {}, soon()));
    }
    EXPECT_EQ(co_await count(*admin), 0);
  });
}

TEST_F(ConnectionTest, AnIdleConnectionThatWasTerminatedIsNoticed) {
  run_task([&]() -> Task<void> {
    const auto admin = co_await db_.connect();
    const auto connection = co_await db_.connect();
    EXPECT_TRUE(connection->still_connected());
    const auto pid = std::to_string(connection->backend_pid());
    co_await terminate(*admin, connection->backend_pid());
    co_await wait_until(*admin, "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = " + pid + ")");
    EXPECT_FALSE(connection->still_connected());
  });
}

// A deferred trigger makes COMMIT itself wait, so that it can be interrupted there.
constexpr const char* kSlowCommit = R"sql(
CREATE FUNCTION wait_at_commit() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN PERFORM pg_advisory_lock(1); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION wait_at_commit();
)sql";

Task<void> commit(Transaction& transaction) {
  co_await transaction.commit(soon());
}

TEST_F(ConnectionTest, AConnectionLostDuringCommitLeavesTheOutcomeUnknown) {
  db_.execute(kSlowCommit);
  run_task([&]() -> Task<void> {
    const auto admin = co_await db_.connect();
    const auto executor = co_await asio::this_coro::executor;
    co_await admin->query(kTakeLock, {}, soon());

    const auto first = co_await db_.connect();
    Batch batch;
    batch.add(kInsert, {1});
    Beside committing_batch(executor, run_batch(*first, std::move(batch), soon()));
    co_await wait_until_stuck(*admin, first->backend_pid());
    co_await terminate(*admin, first->backend_pid());
    co_await message_of<CommitOutcomeUnknown>(committing_batch.join());

    const auto second = co_await db_.connect();
    auto transaction = co_await begin(*second, soon());
    co_await second->query(kInsert, {2}, soon());
    Beside committing(executor, commit(transaction));
    co_await wait_until_stuck(*admin, second->backend_pid());
    co_await terminate(*admin, second->backend_pid());
    co_await message_of<CommitOutcomeUnknown>(committing.join());
  });
}

// All answers of a batch get lost, also those to the statements before its COMMIT.
TEST_F(ConnectionTest, AConnectionLostWithoutAnyAnswerLeavesTheOutcomeUnknown) {
  test::PgProxy proxy(db_.socket_folder());
  run_task([&]() -> Task<void> {
    const auto admin = co_await db_.connect();
    ConnectOptions options;
    options.url = "host=" + proxy.folder() + " user=postgres dbname=" + db_.name();
    const auto connection = co_await Connection::connect(std::move(options), soon());
    Batch batch;
    batch.add(kInsert, {1});
    proxy.hold_answers_after("INSERT");
    const auto executor = co_await asio::this_coro::executor;
    Beside committing(executor, run_batch(*connection, std::move(batch), soon()));
    co_await wait_until(*admin, "SELECT count(*) = 1 FROM t");
    proxy.cut();
    co_await message_of<CommitOutcomeUnknown>(committing.join());
  });
}

TEST_F(ConnectionTest, ACommitThatIsCancelledByItsDeadlineIsRolledBack) {
  db_.execute(kSlowCommit);
  run_task([&]() -> Task<void> {
    const auto admin = co_await db_.connect();
    co_await admin->query(kTakeLock, {}, soon());
    const auto connection = co_await db_.connect();
    Batch batch;
    batch.add(kInsert, {1});
    co_await message_of<DeadlineExceeded>(run_batch(*connection, std::move(batch), Deadline::after(50ms)));
    EXPECT_EQ(co_await count(*connection), 0);
  });
}

TEST_F(ConnectionTest, ATransactionCommitsOrIsRolledBackByTheNextCall) {
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    {
      auto transaction = co_await begin(*connection, soon());
      co_await connection->query(kInsert, {1}, soon());
      co_await transaction.commit(soon());
    }
    {
      auto dropped = co_await begin(*connection, soon());
      co_await connection->query(kInsert, {2}, soon());
    }
    EXPECT_TRUE(connection->in_transaction());
    EXPECT_EQ(co_await count(*connection), 1);
    EXPECT_FALSE(connection->in_transaction());
    {
      auto transaction = co_await begin(*connection, soon());
      co_await connection->query(kInsert, {3}, soon());
      co_await transaction.rollback(soon());
    }
    EXPECT_EQ(co_await count(*connection), 1);
  });
}

TEST_F(ConnectionTest, AFailedTransactionIsNotReportedAsCommitted) {
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    auto transaction = co_await begin(*connection, soon());
    co_await message_of<Error>(run_query(*connection, kInsert, {1000}, soon()));
    const auto message = co_await message_of<Error>(commit(transaction));
    EXPECT_NE(message.find("25P02"), std::string::npos) << message;
    EXPECT_FALSE(connection->in_transaction());
  });
}

TEST_F(ConnectionTest, ADeadHostIsPassedOver) {
  run_task([&]() -> Task<void> {
    ConnectOptions options;
    options.url = "host=127.0.0.1,/nonexistent," + db_.socket_folder() +
                  " port=1,5432,5432 user=postgres dbname=" + db_.name() + " target_session_attrs=read-write";
    const auto connection = co_await Connection::connect(options, soon());
    co_await connection->query(kOne, {}, soon());
  });
}

TEST_F(ConnectionTest, AReadOnlyServerIsNotTakenForReadWrite) {
  db_.execute("ALTER DATABASE " + db_.name() + " SET default_transaction_read_only = on");
  run_task([&]() -> Task<void> {
    ConnectOptions options;
    options.url = db_.url() + " target_session_attrs=read-write";
    const auto message = co_await message_of<ConnectionLost>(connect_and_close(options, soon()));
    EXPECT_NE(message.find("read-only"), std::string::npos) << message;
    options.url = db_.url() + " target_session_attrs=any";
    co_await connect_and_close(options, soon());
  });
}

TEST_F(ConnectionTest, SettingsOfTheCallerReachTheServer) {
  run_task([&]() -> Task<void> {
    ConnectOptions options;
    options.url = db_.url();
    options.application_name = "todoke test";
    options.settings = {{"options", "-c statement_timeout=12345"}};
    const auto connection = co_await Connection::connect(options, soon());
    constexpr Statement kShow{
        "show", "SELECT current_setting('statement_timeout'), current_setting('application_name')"};
    const auto result = co_await connection->query(kShow, {}, soon());
    EXPECT_EQ(result.one().get<std::string>(0), "12345ms");
    EXPECT_EQ(result.one().get<std::string>(1), "todoke test");
  });
}

TEST_F(ConnectionTest, MessagesNeverShowThePassword) {
  run_task([&]() -> Task<void> {
    for (const char* url : {"postgres://user:hunter2secret@[::1/x", "postgres://host:hunter2secret",
                            "postgres://user:p@hunter2secret@host/db", "hunter2secret without equals",
                            "postgres://u:hunter2secret%zz@host/db"}) {
      ConnectOptions options;
      options.url = url;
      const auto message = co_await message_of<UserError>(connect_and_close(options, soon()));
      EXPECT_EQ(message.find("hunter2secret"), std::string::npos) << message;
    }
    ConnectOptions options;
    options.url = "host=127.0.0.1 port=1 user=hunter2secret password=hunter2secret";
    const auto message = co_await message_of<ConnectionLost>(connect_and_close(options, soon()));
    EXPECT_EQ(message.find("hunter2secret"), std::string::npos) << message;
  });
}

TEST_F(ConnectionTest, AConnectionMovesBetweenExecutors) {
  auto connection = run_task([&] { return db_.connect(); });
  for (int i = 0; i < 3; ++i) {
    connection->detach();
    run_task([&]() -> Task<void> {
      co_await connection->query(kInsert, {i}, soon());
      connection->detach();
    });
  }
  const auto rows = run_task([&]() -> Task<std::int64_t> {
    const auto found = co_await count(*connection);
    connection->detach();
    co_return found;
  });
  EXPECT_EQ(rows, 3);
}

TEST_F(ConnectionTest, AConnectThatIsNeverAnsweredEndsAtItsDeadline) {
  run_task([&]() -> Task<void> {
    // The kernel takes the connection, but nobody reads from it.
    const asio::ip::tcp::endpoint loopback(asio::ip::address_v4::loopback(), 0);
    asio::ip::tcp::acceptor silent(co_await asio::this_coro::executor, loopback);
    ConnectOptions options;
    options.url = "host=127.0.0.1 user=postgres port=" + std::to_string(silent.local_endpoint().port());
    co_await message_of<DeadlineExceeded>(connect_and_close(options, Deadline::after(100ms)));
  });
}

}  // namespace
}  // namespace todoke::pg

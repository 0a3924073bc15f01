#include "pg/migrations.hpp"

#include <set>

#include <gmock/gmock.h>

#include "base/error.hpp"
#include "pg/channels.hpp"
#include "pg/migrations_sql.hpp"
#include "pg/support.hpp"

namespace todoke::pg {
namespace {

using List = std::vector<Migration>;

const List kTwo{{1, "one", "CREATE TABLE one (n int);"}, {2, "two", "CREATE TABLE two (n int);"}};
constexpr Statement kTables{
    "tables", "SELECT count(*) FROM pg_tables WHERE schemaname = 'public' AND tablename IN ('one', 'two')"};
constexpr Statement kBooked{"booked", "SELECT count(*) FROM todoke.schema_migrations"};

// A database without the schema of the migrations that are built in.
class Migrations : public testing::Test {
 protected:
  Migrations() { db_.execute("DROP SCHEMA todoke CASCADE; DROP SCHEMA cn_admin CASCADE"); }
  TestDatabase db_;
};

Task<std::int64_t> number(Connection& connection, Statement statement) {
  const auto result = co_await connection.query(statement, {}, soon());
  co_return result.one().get<std::int64_t>(0);
}

template <class E>
Task<std::string> refusal(Connection& connection, const List& list) {
  try {
    co_await migrate(connection, list);
  } catch (const E& error) {
    co_return error.what();
  }
  ADD_FAILURE() << "migrated";
  co_return "";
}

TEST_F(Migrations, AFreshDatabaseGetsAllAndTheNextCallFindsNothingToDo) {
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    const auto before = co_await migration_status(*connection, kTwo, soon());
    EXPECT_EQ(before.pending.size(), 2u);
    const auto first = co_await migrate(*connection, kTwo, "test 1.0");
    EXPECT_EQ(first.applied, (std::vector<std::int32_t>{1, 2}));
    const auto second = co_await migrate(*connection, kTwo);
    EXPECT_TRUE(second.applied.empty());
    EXPECT_EQ(second.version, 2);
    EXPECT_EQ(co_await number(*connection, kTables), 2);
    const auto after = co_await migration_status(*connection, kTwo, soon());
    EXPECT_TRUE(after.pending.empty());
    EXPECT_EQ(after.problem, "");
    EXPECT_EQ(after.applied.at(1).name, "two");
    EXPECT_EQ(after.applied.at(1).applied_by, "test 1.0");
    EXPECT_EQ(after.applied.at(1).checksum, checksum(kTwo[1]));
  });
}

Task<void> migrate_on_its_own(const TestDatabase& db, const List& list, std::size_t& applied) {
  const auto connection = co_await db.connect();
  const auto report = co_await migrate(*connection, list);
  applied += report.applied.size();
}

TEST_F(Migrations, EightAtOnceApplyEachFileOnce) {
  run_task([&]() -> Task<void> {
    const auto executor = co_await asio::this_coro::executor;
    std::size_t applied = 0;
    std::vector<Beside> starters;
    for (int i = 0; i < 8; ++i) starters.emplace_back(executor, migrate_on_its_own(db_, kTwo, applied));
    for (auto& starter : starters) co_await starter.join();
    EXPECT_EQ(applied, kTwo.size());
  });
}

TEST_F(Migrations, AFileThatFailsLeavesNothingBehindAndCanBeMended) {
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    const List broken{kTwo[0], {2, "two", "CREATE TABLE two (n int); SELECT 1 / 0;"}};
    co_await refusal<Error>(*connection, broken);
    EXPECT_FALSE(connection->in_transaction());
    EXPECT_EQ(co_await number(*connection, kTables), 1);
    EXPECT_EQ(co_await number(*connection, kBooked), 1);
    // On another connection: the lock was let go.
    const auto other = co_await db_.connect();
    co_await migrate(*other, kTwo);
    EXPECT_EQ(co_await number(*connection, kTables), 2);
  });
}

TEST_F(Migrations, AFileThatEndsItsOwnTransactionIsRefused) {
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    const List ending{{1, "one", "CREATE TABLE one (n int); COMMIT;"}};
    co_await refusal<std::logic_error>(*connection, ending);
  });
}

TEST_F(Migrations, AChangedFileIsRefused) {
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    co_await migrate(*connection, kTwo);
    const List changed{{1, "one", "CREATE TABLE one (n bigint);"}, kTwo[1]};
    const auto message = co_await refusal<UserError>(*connection, changed);
    EXPECT_EQ(message.find("migration 0001 was changed after it was applied"), 0u) << message;
    const auto status = co_await migration_status(*connection, changed, soon());
    EXPECT_EQ(status.problem, message);
  });
}

TEST_F(Migrations, ADatabaseOfAnEarlyBuildIsRefusedAndThePersonToldWhatToDo) {
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    const List early{{1, "earliest", "CREATE TABLE one (n int);"}, {2, "later", ""}, {3, "last", ""}};
    co_await migrate(*connection, early);
    const auto message = co_await refusal<UserError>(*connection, kTwo);
    EXPECT_EQ(message.find("an early build of todoke made this database"), 0u) << message;
    EXPECT_NE(message.find("its migration 0001 is earliest"), std::string::npos) << message;
    EXPECT_NE(message.find("start with an empty database"), std::string::npos) << message;
    EXPECT_EQ(co_await number(*connection, kBooked), 3) << "nothing was changed";
  });
}

TEST_F(Migrations, DoNotWaitForTheLogsLock) {
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    const auto appender = co_await db_.connect();
    co_await appender->execute_script("BEGIN; SELECT cn_relay.lock_log()", soon());
    co_await connection->execute_script("SET lock_timeout = '10s'", soon());
    const auto report = co_await migrate(*connection, kTwo);
    EXPECT_EQ(report.version, 2);
  });
}

TEST_F(Migrations, ANewerDatabaseIsRefused) {
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    co_await migrate(*connection, kTwo);
    const List older{kTwo[0]};
    const auto message = co_await refusal<UserError>(*connection, older);
    EXPECT_EQ(message.find("database is newer than this binary"), 0u) << message;
    EXPECT_NE(message.find("install a newer todoke"), std::string::npos) << message;
  });
}

TEST_F(Migrations, GapsAndDuplicatesAreRefused) {
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    const List gap{kTwo[0], {3, "three", ""}};
    const List twice{kTwo[0], {1, "one", ""}};
    co_await refusal<std::logic_error>(*connection, gap);
    co_await refusal<std::logic_error>(*connection, twice);
  });
}

TEST(EmbeddedMigrations, TheTemplateOfTheTestsHasThemAll) {
  const TestDatabase db;
  run_task([&]() -> Task<void> {
    const auto connection = co_await db.connect();
    const auto status = co_await migration_status(*connection, embedded_migrations(), soon());
    EXPECT_EQ(status.problem, "");
    EXPECT_TRUE(status.pending.empty());
    EXPECT_EQ(status.applied.at(0).name, "admin");
    co_await connection->execute_script("INSERT INTO cn_admin.service_configs (service) VALUES ('relay')",
                                        soon());
    bool refused = false;
    try {
      co_await connection->execute_script(
          "INSERT INTO cn_admin.service_configs (service, config) VALUES ('x', '[]')", soon());
    } catch (const Error& error) {
      refused = error.is_check_violation();
    }
    EXPECT_TRUE(refused);
  });
}

// What the functions of cn_names give whose names begin with `kind`, as text.
Task<std::vector<std::string>> shared_names(Connection& connection, std::string kind) {
  constexpr Statement kCalls{
      "calls",
      "SELECT string_agg(format('SELECT %s::text AS name', p.oid::regprocedure), ' UNION ALL ') FROM pg_proc "
      "p "
      "WHERE p.pronamespace = 'cn_names'::regnamespace AND starts_with(p.proname, $1)"};
  const auto calls = co_await connection.query(kCalls, {kind}, soon());
  const auto text = calls.one().get<std::string>(0);
  const auto rows = co_await connection.query(Statement{"names", text}, {}, soon());
  std::vector<std::string> names;
  for (const auto& row : rows) names.push_back(row.get<std::string>(0));
  co_return names;
}

TEST(EmbeddedMigrations, ChannelsAreTheSameInTheDatabaseAndInTheProgram) {
  const TestDatabase db;
  run_task([&]() -> Task<void> {
    const auto connection = co_await db.connect();
    const std::vector<std::string> listened(channels::kAll.begin(), channels::kAll.end());
    EXPECT_THAT(co_await shared_names(*connection, "channel_"), testing::UnorderedElementsAreArray(listened));
  });
}

TEST(EmbeddedMigrations, EveryLockHasANumberOfItsOwnAndMigrationsTakeTheirs) {
  const TestDatabase db;
  run_task([&]() -> Task<void> {
    const auto connection = co_await db.connect();
    const auto numbers = co_await shared_names(*connection, "lock_");
    EXPECT_GT(numbers.size(), 5U);
    EXPECT_EQ(std::set(numbers.begin(), numbers.end()).size(), numbers.size());
    const auto own = co_await shared_names(*connection, "lock_migrations");
    for (const auto& statement : {sql::kLockMigrations, sql::kUnlockMigrations})
      EXPECT_THAT(std::string(statement.sql), testing::HasSubstr("lock(" + own.at(0) + ")"));
  });
}

TEST(EmbeddedMigrations, EveryTableSaysWhatItPromises) {
  const TestDatabase db;
  run_task([&]() -> Task<void> {
    const auto connection = co_await db.connect();
    constexpr Statement kSilent{
        "silent",
        "SELECT string_agg(c.oid::regclass::text, ', ') FROM pg_class c "
        "WHERE c.relnamespace::regnamespace::text IN ('cn_admin', 'cn_relay', 'cn_search', 'orders') "
        "  AND c.relkind IN ('r', 'p', 'v') AND NOT c.relispartition AND obj_description(c.oid) IS NULL"};
    const auto silent = co_await connection->query(kSilent, {}, soon());
    EXPECT_EQ(silent.one().get<std::optional<std::string>>(0).value_or(""), "");
  });
}

}  // namespace
}  // namespace todoke::pg

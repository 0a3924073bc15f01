// Two roles: the owner of the tables migrates, a node works with less. Both are ordinary roles here, as in a
// database that somebody else looks after.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "harness/sql_session.hpp"
#include "pg/migrations.hpp"
#include "pg/support.hpp"

namespace todoke::pg {
namespace {

using test::SqlSession;
using testing::HasSubstr;

const std::string kDenied = "42501";

Task<std::unique_ptr<Connection>> connect_to(std::string url) {
  ConnectOptions options;
  options.url = std::move(url);
  co_return co_await Connection::connect(std::move(options), soon());
}

// An empty database that belongs to a role of its own, and another role that a node would have.
class Roles : public testing::Test {
 protected:
  Roles() {
    admin_.run(fmt::format("CREATE ROLE {} LOGIN", owner()));
    admin_.run(fmt::format("CREATE ROLE {} LOGIN", node()));
    admin_.run(fmt::format("CREATE DATABASE {} OWNER {}", owner(), owner()));
  }
  ~Roles() override {
    admin_.run(fmt::format("DROP DATABASE {} WITH (FORCE)", owner()));
    admin_.run(fmt::format("DROP ROLE {}", owner()));
    admin_.run(fmt::format("DROP ROLE {}", node()));
  }

  [[nodiscard]] std::string owner() const { return "owner_" + name_; }
  [[nodiscard]] std::string node() const { return "node_" + name_; }
  [[nodiscard]] std::string url_as(const std::string& role) const {
    return fmt::format("{} user={} dbname={}", db_.url(), role, owner());
  }

  void migrate_as_owner() {
    run_task([this]() -> Task<void> {
      const auto connection = co_await connect_to(url_as(owner()));
      co_await migrate(*connection, embedded_migrations(), "test", node());
    });
  }
  // What migrate() says to the node; empty: it found nothing to do.
  std::string complaint_to_node() {
    std::string said;
    run_task([&]() -> Task<void> {
      const auto connection = co_await connect_to(url_as(node()));
      try {
        const auto report = co_await migrate(*connection, embedded_migrations());
        EXPECT_TRUE(report.applied.empty());
      } catch (const UserError& error) {
        said = error.what();
      }
    });
    return said;
  }

 private:
  TestDatabase db_;  // for the server
  SqlSession admin_{db_.url()};
  std::string name_ = random_hex(6);
};

TEST_F(Roles, ANodeWorksWithoutTheRightToChangeTheSchema) {
  migrate_as_owner();
  SqlSession session(url_as(node()));
  for (const auto* statement : {
           "SELECT * FROM cn_relay.lock_log()",
           "INSERT INTO cn_relay.events_outbox (op, event_id, topic_id, kind, created_at, ingested_at) "
           "VALUES ('upsert', 'e', 't', 1, 1, now())",
           "SELECT cn_relay.check_log(5, true)",  // as after a restore: the log goes on later
           "SELECT * FROM cn_relay.backlogs()",
           "SELECT cn_relay.ensure_partitions(now() + interval '3 months')",
           "SELECT cn_relay.ensure_open_indexes()",
           "INSERT INTO cn_relay.consumer_offsets (consumer, last_seq) VALUES ('index', 1)",
           "UPDATE cn_relay.consumer_offsets SET last_seq = 0",
           "SELECT cn_search.begin_rebuild()",
           "INSERT INTO cn_search.post_search_documents_next (event_id, pubkey, kind, created_at, "
           "ingested_at, "
           "topics, tokens) VALUES ('e', 'p', 1, 1, now(), '{}', '')",
           "SELECT cn_search.create_indexes('_next')",
           "SELECT cn_search.swap_rebuilt()",
           "UPDATE cn_search.post_search_documents SET deleted_at = now()",
           "SELECT orders.ensure_partitions(now() + interval '3 months')",
           "INSERT INTO orders.audit (actor, action) VALUES ('worker', 'test')",
           "INSERT INTO orders.outbox_orders (idempotency_key, order_request_json, request_digest) "
           "VALUES ('key-0001', '{}', 'd')",
           "INSERT INTO orders.sends (outbox_id, key_hash, claim_no, adapter, began_at, ended_at, outcome, "
           "worker) VALUES (1, 'h', 1, 'paper', now(), now(), 'ok', 'w')",
           "INSERT INTO cn_admin.service_configs (service, config) VALUES ('relay', '{\"relay.name\": "
           "\"x\"}')",
           "UPDATE cn_admin.service_configs SET config = '{}'",
       }) {
    EXPECT_NO_THROW(session.run(statement)) << statement;
  }
  EXPECT_EQ(session.value("SELECT count(*) FROM cn_admin.service_config_history"), "2")
      << "triggers write the history";
  EXPECT_EQ(complaint_to_node(), "");
}

TEST_F(Roles, ANodeIsRefusedTheSchemaTheAuditAndWhatIsNotItsOwn) {
  migrate_as_owner();
  SqlSession session(url_as(node()));
  session.run("INSERT INTO orders.audit (actor, action) VALUES ('worker', 'test')");
  const auto month = session.value("SELECT 'orders.sends_' || to_char(now() AT TIME ZONE 'UTC', 'YYYY_MM')");
  for (const auto& statement : std::vector<std::string>{
           "CREATE TABLE cn_relay.mine (n int)",
           "CREATE TABLE orders.mine (n int)",
           "CREATE SCHEMA mine",
           "ALTER TABLE cn_relay.events ADD COLUMN mine int",
           "ALTER TABLE orders.audit DISABLE TRIGGER ALL",
           "DROP TABLE orders.audit",
           "DROP TRIGGER append_only ON orders.audit",
           "CREATE OR REPLACE FUNCTION orders.append_only() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN END'",
           "UPDATE orders.audit SET actor = 'nobody'",
           "INSERT INTO orders.audit (actor, action, db_role) VALUES ('a', 'b', 'another')",
           "INSERT INTO orders.audit (actor, action, at) VALUES ('a', 'b', '2020-01-01')",
           "DELETE FROM orders.audit",
           "TRUNCATE orders.audit",
           "UPDATE orders.sends SET outcome = 'ok'",
           "DELETE FROM orders.sends",
           "DELETE FROM " + month,
           "TRUNCATE " + month,
           "DROP TABLE " + month,
           "INSERT INTO cn_admin.service_config_history (service, version, key, changed_by) "
           "VALUES ('relay', 9, 'k', 'nobody')",
           "DELETE FROM cn_admin.service_config_history",
           "DELETE FROM todoke.schema_migrations",
           "TRUNCATE cn_relay.events_outbox",
           "SELECT setval('cn_relay.events_outbox_seq', 1)",
           "CREATE ROLE mine",
           "SET session_replication_role = replica",
           "SELECT cn_relay.put_consumer_role('mine', 'x')",
           "SELECT cn_relay.add_partition('events_outbox', 'mine', '1', '2')",
       }) {
    EXPECT_EQ(session.tried(statement), kDenied) << statement;
  }
  // Functions that act as the owner do only what they are for.
  EXPECT_EQ(session.tried("SELECT cn_search.create_indexes('_next; DROP TABLE orders.audit')"), "42P01");
  EXPECT_EQ(session.tried("SELECT orders.drop_old_partition('orders.audit')"), "55000");
  EXPECT_EQ(session.tried(fmt::format("SELECT orders.drop_old_partition('{}')", month)), "55000");
  EXPECT_EQ(session.value("SELECT count(*) FROM orders.audit"), "1");
}

TEST_F(Roles, ANodeCanNotPutATriggerOfTheOwnersOnATableOfItsOwn) {
  migrate_as_owner();
  SqlSession session(url_as(node()));
  session.run("CREATE TEMP TABLE mine (id int)");
  const auto functions = session.run(
      "SELECT oid::regprocedure FROM pg_proc WHERE prosecdef AND prorettype = 'trigger'::regtype");
  EXPECT_THAT(functions, testing::Contains("cn_admin.add_link()"));
  for (const auto& function : functions) {
    EXPECT_EQ(
        session.tried("CREATE TRIGGER forged AFTER INSERT ON mine FOR EACH ROW EXECUTE FUNCTION " + function),
        kDenied)
        << function;
  }
}

TEST_F(Roles, OnlyRolesThatWereGrantedItCallWhatActsAsTheOwner) {
  migrate_as_owner();
  SqlSession session(url_as(node()));
  EXPECT_THAT(session.run("SELECT oid::regprocedure FROM pg_proc WHERE prosecdef AND"
                          " has_function_privilege('public', oid, 'EXECUTE')"),
              testing::IsEmpty());
}

TEST_F(Roles, TemporaryTablesDoNotStandInForTheCatalogInFunctionsOfTheOwner) {
  migrate_as_owner();
  SqlSession session(url_as(node()));
  EXPECT_EQ(session.tried("CREATE TEMP TABLE pg_inherits AS SELECT 'orders.audit'::regclass::oid AS inhrelid,"
                          " 'orders.sends'::regclass::oid AS inhparent;"
                          "CREATE TEMP TABLE pg_class AS SELECT 'orders.audit'::regclass::oid AS oid,"
                          " 'audit_2020_01' AS relname;"
                          "GRANT SELECT ON pg_temp.pg_inherits, pg_temp.pg_class TO PUBLIC;"
                          "SELECT orders.drop_old_partition('orders.audit')"),
            "55000");
  EXPECT_THAT(session.run("SELECT oid::regprocedure FROM pg_proc WHERE prosecdef AND"
                          " 'search_path=pg_catalog, pg_temp' <> ALL (coalesce(proconfig, '{}'))"),
              testing::IsEmpty());
}

TEST_F(Roles, TheAuditAndTheHistoryShowWhichRoleWroteThem) {
  migrate_as_owner();
  for (const auto& role : {node(), owner()}) {
    SqlSession session(url_as(role));
    session.run("SET orders.actor = 'operator:somebody else'; SET cn_admin.actor = 'operator:somebody else'");
    session.run("INSERT INTO orders.audit (actor, action) VALUES ('operator:somebody else', 'test')");
    session.run(fmt::format(
        "INSERT INTO cn_admin.service_configs (service, config) VALUES ('{}', '{{\"a\": 1}}')", role));
    EXPECT_EQ(session.value(fmt::format("SELECT count(*) FROM orders.audit WHERE db_role = '{}'", role)),
              "1");
    EXPECT_EQ(session.value(fmt::format(
                  "SELECT db_role FROM cn_admin.service_config_history WHERE service = '{}'", role)),
              role);
  }
}

TEST_F(Roles, NobodyIsAuditedAsAnotherRole) {
  migrate_as_owner();
  constexpr auto kCheckViolation = "23514";
  for (const auto& [role, other] : {std::pair(node(), owner()), std::pair(owner(), node())}) {
    SqlSession session(url_as(role));
    const auto forged = "sql:" + other;
    const auto change = fmt::format(
        "INSERT INTO cn_admin.service_configs (service, config) VALUES ('{}', '{{\"a\": 1}}')", role);
    const auto audit = [](const std::string& actor) {
      return fmt::format("INSERT INTO orders.audit (actor, action) VALUES ('{}', 'test')", actor);
    };
    session.run(fmt::format("SET cn_admin.actor = '{}'", forged));
    EXPECT_EQ(session.tried(audit(forged)), kCheckViolation);
    EXPECT_EQ(session.tried("SELECT cn_admin.note('test', 'test')"), kCheckViolation);
    EXPECT_EQ(session.tried(change), kCheckViolation);
    session.run("RESET cn_admin.actor");
    EXPECT_NO_THROW(session.run(audit("sql:" + role)));
    EXPECT_NO_THROW(session.run("SELECT cn_admin.note('test', 'test')"));
    EXPECT_NO_THROW(session.run(change));
  }
}

TEST_F(Roles, ANodeThatMayNotMigrateSaysWhoCan) {
  EXPECT_THAT(complaint_to_node(), HasSubstr(fmt::format("its role {} may not change the schema: set "
                                                         "database.owner_url",
                                                         node())));
  run_task([this]() -> Task<void> {
    const auto connection = co_await connect_to(url_as(owner()));
    co_await migrate(*connection, embedded_migrations(), "test");
  });
  EXPECT_THAT(complaint_to_node(),
              HasSubstr(fmt::format("the role {} has no rights in this database", node())));
  migrate_as_owner();  // nothing to migrate, but a role that has nothing yet
  EXPECT_EQ(complaint_to_node(), "");
}

}  // namespace
}  // namespace todoke::pg

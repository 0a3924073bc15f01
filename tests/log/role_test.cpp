// What the role of a consumer may do, and that it may do nothing else.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "log/rig.hpp"

namespace todoke::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const std::string kDenied = "42501";

const std::string kOurRelations =
    "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = "
    "c.relnamespace "
    "WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND c.relkind IN ('r', 'p', 'v', 'm', "
    "'f') ORDER BY 1";

// A node takes seconds to make, so each test asks it several things.
class ConsumerRole : public testing::Test {
 protected:
  ConsumerRole() : node(Tcp::plain), url(node.add("one")), session(url) {
    static_cast<void>(node.add("two"));
    node.publish(1, 3);
  }

  void expect_denied(const std::string& statement) {
    EXPECT_EQ(session.tried(statement), kDenied) << statement;
  }
  void expect_allowed(const std::string& statement) { EXPECT_EQ(session.tried(statement), "") << statement; }

  void reads_the_log_and_the_events();
  void reads_partitions_that_are_made_later();
  void hears_that_the_log_has_moved();
  void sees_and_moves_its_own_offset_only();
  void makes_its_own_offset_but_nobody_elses();
  void reads_no_other_table_and_writes_none();
  void calls_no_function_that_writes();
  void can_not_hold_up_ingest();
  void can_not_become_more_than_it_is();
  void can_not_look_around_the_policy_of_offsets();
  void leaves_the_node_and_other_roles_unhindered();
  void is_the_only_one_to_come_in_over_tcp();
  void has_few_connections();

  LogNode node;
  std::string url;
  SqlSession session;
};

void ConsumerRole::reads_the_log_and_the_events() {
  EXPECT_NE(session.value("SELECT count(*) FROM cn_relay.events_outbox"), "0");
  EXPECT_EQ(session.value("SELECT count(*) FROM cn_relay.events_outbox o JOIN cn_relay.events e "
                          "ON e.event_id = o.event_id AND e.ingested_at = o.ingested_at WHERE op = 'upsert'"),
            node.sql("SELECT count(*) FROM cn_relay.events_outbox WHERE op = 'upsert'"));
  EXPECT_EQ(session.value("SELECT count(*) FROM cn_relay.effective_events"),
            node.sql("SELECT count(*) FROM cn_relay.effective_events"));
  EXPECT_NE(session.value("SELECT count(*) FROM events_outbox WHERE seq > 0"), "0")
      << "names without their schema";
}

void ConsumerRole::reads_partitions_that_are_made_later() {
  node.sql("SELECT setval('cn_relay.events_outbox_seq', 5000000)");
  node.sql("SELECT cn_relay.ensure_partitions(now() + interval '2 months')");
  node.append_by_sql(1);
  EXPECT_EQ(session.value("SELECT max(seq) FROM cn_relay.events_outbox"), "5000001");
  EXPECT_EQ(session.value("SELECT tableoid::regclass FROM cn_relay.events_outbox WHERE seq = 5000001"),
            "events_outbox_000005");
  expect_denied("SELECT 1 FROM cn_relay.events_outbox_000005");
}

void ConsumerRole::hears_that_the_log_has_moved() {
  session.run("LISTEN cn_relay_outbox");
  node.publish(1, 1);
  EXPECT_EQ(session.notification(), "cn_relay_outbox");
}

void ConsumerRole::sees_and_moves_its_own_offset_only() {
  EXPECT_EQ(session.value("SELECT consumer FROM cn_relay.consumer_offsets"), "one");
  session.run("UPDATE cn_relay.consumer_offsets SET last_seq = 3, updated_at = now()");
  EXPECT_EQ(node.sql("SELECT consumer, last_seq FROM cn_relay.consumer_offsets WHERE consumer IN ('one', "
                     "'two') ORDER BY 1"),
            "one|3\ntwo|0");
  session.run("UPDATE cn_relay.consumer_offsets SET last_seq = 1 WHERE consumer = 'one'");
  EXPECT_EQ(node.sql("SELECT last_seq FROM cn_relay.consumer_offsets WHERE consumer = 'one'"), "1")
      << "back, too";
  session.run("UPDATE cn_relay.consumer_offsets SET last_seq = 9 WHERE consumer = 'two'");
  EXPECT_EQ(node.sql("SELECT last_seq FROM cn_relay.consumer_offsets WHERE consumer = 'two'"), "0");
  expect_allowed("SELECT last_seq FROM cn_relay.consumer_offsets WHERE consumer = 'one' FOR UPDATE");
  for (const auto& column : lines_of(
           node.sql("SELECT attname FROM pg_attribute WHERE attrelid = 'cn_relay.consumer_offsets'::regclass "
                    "AND attnum > 0 AND NOT attisdropped AND attname NOT IN ('last_seq', 'updated_at')"))) {
    expect_denied(fmt::format("UPDATE cn_relay.consumer_offsets SET {0} = {0}", column));
  }
}

void ConsumerRole::makes_its_own_offset_but_nobody_elses() {
  const std::string insert =
      "INSERT INTO cn_relay.consumer_offsets (consumer, last_seq, updated_at) VALUES ('{}', 7, now()) "
      "ON CONFLICT (consumer) DO UPDATE SET last_seq = excluded.last_seq, updated_at = excluded.updated_at";
  session.run(fmt::format(fmt::runtime(insert), "one"));
  EXPECT_EQ(node.sql("SELECT last_seq FROM cn_relay.consumer_offsets WHERE consumer = 'one'"), "7");
  node.sql("DELETE FROM cn_relay.consumer_offsets WHERE consumer = 'one'");
  session.run(fmt::format(fmt::runtime(insert), "one"));
  EXPECT_EQ(node.sql("SELECT last_seq FROM cn_relay.consumer_offsets WHERE consumer = 'one'"), "7");
  expect_denied(fmt::format(fmt::runtime(insert), "two"));
  expect_denied(fmt::format(fmt::runtime(insert), "three"));
  expect_denied(
      "INSERT INTO cn_relay.consumer_offsets (consumer, last_seq, mandatory) VALUES ('one', 0, true)");
}

void ConsumerRole::reads_no_other_table_and_writes_none() {
  const auto relations = lines_of(node.sql(kOurRelations));
  ASSERT_THAT(relations, testing::Contains("todoke.schema_migrations"));
  for (const auto& relation : relations) {
    const bool readable = relation == "cn_relay.events_outbox" || relation == "cn_relay.events" ||
                          relation == "cn_relay.effective_events" || relation == "cn_relay.consumer_offsets";
    EXPECT_EQ(session.tried("SELECT 1 FROM " + relation), readable ? "" : kDenied) << relation;
    if (relation == "cn_relay.event_topics") continue;  // a view over two tables, which nobody can write
    expect_denied("DELETE FROM " + relation);
    expect_denied("LOCK TABLE " + relation + " IN SHARE MODE");
    const auto column =
        node.sql(fmt::format("SELECT attname FROM pg_attribute WHERE attrelid = '{}'::regclass AND attnum > "
                             "0 AND attidentity = '' ORDER BY attnum LIMIT 1",
                             relation));
    expect_denied(fmt::format("UPDATE {0} SET {1} = {1}", relation, column));
    if (relation != "cn_relay.consumer_offsets") expect_denied("INSERT INTO " + relation + " DEFAULT VALUES");
    if (relation == "cn_relay.effective_events") continue;
    expect_denied("TRUNCATE " + relation);
    expect_denied("DROP TABLE " + relation);
  }
  expect_denied("SELECT 1 FROM cn_relay.events_outbox FOR UPDATE");
  expect_denied("COPY cn_relay.events_outbox (op) FROM STDIN");
  expect_denied("SELECT nextval('cn_relay.events_outbox_seq')");
  expect_denied("SELECT setval('cn_relay.events_outbox_seq', 1)");
}

void ConsumerRole::calls_no_function_that_writes() {
  expect_denied("SELECT cn_relay.lock_log()");
  expect_denied("SELECT cn_relay.check_log(0, true)");
  expect_denied("SELECT cn_relay.move_log()");
  expect_denied("SELECT cn_relay.note_log_place(0)");
  expect_denied("SELECT cn_relay.retire('', now(), 'r', 'deleted')");
  expect_denied("SELECT cn_relay.erase('', now(), 'r')");
  expect_denied("SELECT cn_relay.ensure_partitions(now())");
  expect_denied("SELECT cn_relay.add_partition('events_outbox', 'x', '0', '1')");
  expect_denied("SELECT cn_relay.put_consumer_role('one', '')");
  // All others run with the rights of the role itself, which can't write.
  EXPECT_THAT(
      session.run(
          "SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace "
          "WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND p.prosecdef "
          "AND has_function_privilege(p.oid, 'EXECUTE')"),
      IsEmpty());
}

void ConsumerRole::can_not_hold_up_ingest() {
  const std::string lock = "cn_names.lock_log()";
  for (const auto* prefix : {"pg_advisory_", "pg_try_advisory_"}) {
    for (const auto* scope : {"lock", "xact_lock", "lock_shared", "xact_lock_shared"}) {
      expect_denied(fmt::format("SELECT {}{}({})", prefix, scope, lock));
      expect_denied(
          fmt::format("SELECT {0}{1}(({2} >> 32)::int, ({2} & 2147483647)::int)", prefix, scope, lock));
    }
  }
  // All that it may hold, for as long as it likes.
  session.run(
      "BEGIN; LOCK TABLE cn_relay.events_outbox, cn_relay.events, cn_relay.consumer_offsets IN ACCESS SHARE "
      "MODE; "
      "SELECT count(*) FROM cn_relay.effective_events; "
      "UPDATE cn_relay.consumer_offsets SET last_seq = last_seq; SELECT * FROM cn_relay.consumer_offsets FOR "
      "UPDATE");
  const std::string stored = "SELECT count(*) FROM cn_relay.events_outbox";
  const auto before = std::stoi(node.sql(stored));
  node.publish(1, 3);
  EXPECT_GT(std::stoi(node.sql(stored)), before);
  EXPECT_NO_THROW(
      node.sql("SET lock_timeout = '20s'; SELECT cn_relay.ensure_partitions(now() + interval '3 months')"))
      << "the partitions that the next events need";
  session.run("ROLLBACK");
}

void ConsumerRole::can_not_become_more_than_it_is() {
  for (const auto* statement :
       {"CREATE TABLE cn_relay.mine (a int)",
        "CREATE TABLE public.mine (a int)",
        "CREATE SCHEMA mine",
        "CREATE FUNCTION public.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE EXTENSION pgcrypto",
        "CREATE ROLE mine",
        "ALTER ROLE consumer_one SUPERUSER",
        "ALTER ROLE consumer_two PASSWORD 'x'",
        "ALTER ROLE consumer_one CONNECTION LIMIT -1",
        "GRANT todoke TO consumer_one",
        "SET ROLE todoke",
        "SET ROLE consumer_two",
        "SET SESSION AUTHORIZATION todoke",
        "ALTER SYSTEM SET fsync = off",
        "ALTER DATABASE todoke SET fsync = off",
        "SELECT pg_reload_conf()",
        "SELECT pg_read_file('pg_hba.conf')",
        "COPY (SELECT 1) TO '/tmp/mine'",
        "COPY (SELECT 1) TO PROGRAM 'true'",
        "CREATE PUBLICATION mine",
        "SELECT lo_import('/etc/hostname')",
        "ALTER TABLE cn_relay.consumer_offsets DISABLE ROW LEVEL SECURITY",
        "DROP POLICY own_row ON cn_relay.consumer_offsets",
        "ALTER TABLE cn_relay.events_outbox DISABLE TRIGGER ALL",
        "CREATE INDEX ON cn_relay.events_outbox (kind)",
        "CREATE TRIGGER mine BEFORE INSERT ON cn_relay.events_outbox EXECUTE FUNCTION "
        "suppress_redundant_updates_trigger()",
        "SELECT pg_create_logical_replication_slot('mine', 'pgoutput')",
        "SET session_replication_role = replica",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'todoke'"}) {
    EXPECT_NE(session.tried(statement), "") << statement;
  }
}

void ConsumerRole::can_not_look_around_the_policy_of_offsets() {
  expect_denied("SET LOCAL row_security = off; SELECT * FROM cn_relay.consumer_offsets");
  expect_denied("SET LOCAL ROLE todoke_consumers; SELECT * FROM cn_relay.consumer_offsets");
  session.run("CREATE TEMP VIEW pg_roles AS SELECT 0::oid AS oid, 'nobody'::name AS rolname");
  session.run("SET search_path = pg_temp, pg_catalog");
  EXPECT_EQ(session.run("SELECT consumer FROM cn_relay.consumer_offsets"), std::vector<std::string>{"one"});
}

void ConsumerRole::leaves_the_node_and_other_roles_unhindered() {
  const std::string count = "SELECT count(*) FROM cn_relay.consumer_offsets WHERE consumer IN ('one', 'two')";
  EXPECT_EQ(node.sql(count), "2");
  node.sql(
      "CREATE ROLE watcher; GRANT USAGE ON SCHEMA cn_relay TO watcher; "
      "GRANT SELECT ON cn_relay.consumer_offsets TO watcher");
  EXPECT_EQ(lines_of(node.sql("SET ROLE watcher; " + count)).back(), "2");
}

void ConsumerRole::is_the_only_one_to_come_in_over_tcp() {
  node.sql("CREATE ROLE stranger LOGIN SUPERUSER PASSWORD 'secret'; ALTER ROLE todoke PASSWORD 'secret'");
  for (const auto* user : {"stranger", "todoke", "nobody"}) {
    EXPECT_THAT(refusal(with_user(url, user, "secret")), HasSubstr("pg_hba.conf rejects")) << user;
  }
  EXPECT_THAT(refusal(with_user(url, "consumer_one", "wrong")), HasSubstr("password authentication failed"));
  auto elsewhere = url;
  elsewhere.replace(elsewhere.rfind("/todoke"), 7, "/postgres");
  EXPECT_THAT(refusal(elsewhere), HasSubstr("pg_hba.conf rejects"));
}

void ConsumerRole::has_few_connections() {
  std::vector<std::unique_ptr<SqlSession>> more;
  std::string refused;
  for (int i = 0; i < 20 && refused.empty(); ++i) {
    try {
      more.push_back(std::make_unique<SqlSession>(url));
    } catch (const std::runtime_error& error) {
      refused = error.what();
    }
  }
  EXPECT_THAT(refused, HasSubstr("too many connections for role"));
  EXPECT_GT(more.size(), 1u);
}

TEST_F(ConsumerRole, ReadsTheLogAndHearsThatItHasMoved) {
  reads_the_log_and_the_events();
  hears_that_the_log_has_moved();
  reads_partitions_that_are_made_later();
}

TEST_F(ConsumerRole, HasItsOwnOffsetAndNoOther) {
  sees_and_moves_its_own_offset_only();
  leaves_the_node_and_other_roles_unhindered();
  makes_its_own_offset_but_nobody_elses();
  can_not_look_around_the_policy_of_offsets();
}

TEST_F(ConsumerRole, WritesNothingElse) {
  reads_no_other_table_and_writes_none();
  calls_no_function_that_writes();
  can_not_hold_up_ingest();
  can_not_become_more_than_it_is();
}

TEST_F(ConsumerRole, ComesInOverTcpAloneAndSeldom) {
  is_the_only_one_to_come_in_over_tcp();
  has_few_connections();
}

TEST(ConsumerTls, IsRequiredWhenThereIsACertificate) {
  LogNode node(Tcp::tls);
  auto url = node.add("one");
  SqlSession session(url);
  EXPECT_EQ(session.value("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"), "t");
  url.replace(url.find("sslmode=require"), 15, "sslmode=disable");
  EXPECT_THAT(refusal(url), HasSubstr("no encryption"));
}

}  // namespace
}  // namespace todoke::test

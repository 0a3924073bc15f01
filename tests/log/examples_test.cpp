// The examples of docs/log.md, word for word, run by those who would run them: as the role that `todoke
// consumers add` made, over TCP, while events come in and the example is killed again and again.
#include <csignal>
#include <fstream>
#include <functional>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "log/rig.hpp"

namespace todoke::test {
namespace {

const std::string kDocs = TODOKE_DOCS;
constexpr int kRounds = 4;
constexpr std::size_t kClients = 3;
constexpr std::size_t kNotesEach = 40;
constexpr std::size_t kRowsBySql = 700;  // more than one batch of an example

std::string contents(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("can't read " + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

const std::string kPostsInEffect =
    "SELECT concat_ws(' ', t, event_id, content) FROM cn_relay.effective_events, unnest(topics) t "
    "WHERE kind = 1 AND NOT non_public ORDER BY 1";

// Feeds the node while `command` runs and is killed between the rounds; `taken` says how many rows it has
// taken.
void feed_and_kill(LogNode& node, const std::vector<std::string>& command,
                   const std::function<std::size_t()>& taken) {
  for (int round = 0; round < kRounds; ++round) {
    ChildProcess follower(command, {});
    node.publish(kClients, kNotesEach);
    node.append_by_sql(kRowsBySql);
    if (round + 1 < kRounds) {
      const auto before = taken();
      node.append_by_sql(kRowsBySql);
      wait_until("the example to go on", [&] { return taken() > before; });
      follower.kill(SIGKILL);
      follower.wait();
      continue;
    }
    const auto all = node.log().size();
    try {
      wait_until("the example to take everything", [&] { return taken() >= all; });
    } catch (const std::runtime_error&) {
      follower.kill(SIGKILL);
      const auto exit = follower.wait();
      FAIL() << "taken " << taken() << " of " << all << "\n" << exit.out << exit.err;
    }
  }
}

void expect_sql_example_works(LogNode& node, const std::string& url) {
  node.sql("CREATE SCHEMA feed AUTHORIZATION consumer_feed");
  const auto taken = [&]() -> std::size_t {
    if (node.sql("SELECT to_regclass('feed.journal') IS NULL") == "t") return 0;
    return std::stoul(node.sql("SELECT count(*) FROM feed.journal"));
  };
  feed_and_kill(node, {"psql", url, "-X", "-f", kDocs + "/examples/follow.sql"}, taken);
  EXPECT_EQ(lines_of(node.sql(
                "SELECT concat_ws(' ', seq, op, event_id, topic_id) FROM feed.journal ORDER BY position")),
            node.log());
  EXPECT_EQ(node.sql("SELECT concat_ws(' ', topic_id, event_id, content) FROM feed.posts ORDER BY 1"),
            node.sql(kPostsInEffect));
}

TEST(PlainSqlExample, GivesEveryRowItsEffectOnceAndInOrderHoweverOftenItIsKilled) {
  LogNode node(Tcp::plain);
  expect_sql_example_works(node, node.add("feed"));
}

TEST(PlainSqlExample, WorksThroughTlsWithTheCertificateChecked) {
  LogNode node(Tcp::tls);
  auto url = node.add("feed");
  ASSERT_THAT(url, testing::HasSubstr("sslmode=require"));
  url.replace(url.find("sslmode=require"), 15,
              "sslmode=verify-full&sslrootcert=" + node.certificate().cert());
  expect_sql_example_works(node, url);
}

// What the SQLite file of the Python example holds.
std::vector<std::string> in_copy(const std::string& path, const std::string& query) {
  const auto exit = run_command({"/usr/bin/python3", "-c",
                                 "import sqlite3, sys\n"
                                 "store = sqlite3.connect(sys.argv[1], timeout=30)\n"
                                 "for row in store.execute(sys.argv[2]): print(*row)",
                                 path, query});
  if (exit.code != 0) throw std::runtime_error(exit.err);
  return lines_of(exit.out);
}

void expect_python_example_works(LogNode& node, const std::string& url) {
  const auto copy = (node.folder().path() / "copy.sqlite").string();
  const auto taken = [&]() -> std::size_t {
    const auto count =
        in_copy(copy, "SELECT (SELECT count(*) FROM sqlite_master WHERE name = 'journal')").front();
    return count == "0" ? 0 : std::stoul(in_copy(copy, "SELECT count(*) FROM journal").front());
  };
  feed_and_kill(node, {"/usr/bin/python3", kDocs + "/examples/follow.py", url, "copy", copy}, taken);
  EXPECT_EQ(in_copy(copy, "SELECT seq, op, event_id, topic_id FROM journal ORDER BY position"), node.log());
  EXPECT_EQ(in_copy(copy, "SELECT topic_id, event_id, content FROM posts ORDER BY 1, 2"),
            lines_of(node.sql(kPostsInEffect)));
}

TEST(PythonExample, GivesEveryRowItsEffectOnceAndInOrderHoweverOftenItIsKilled) {
  LogNode node(Tcp::plain);
  expect_python_example_works(node, node.add("copy"));
}

TEST(PythonExample, WorksThroughTls) {
  LogNode node(Tcp::tls);
  expect_python_example_works(node, node.add("copy"));
}

TEST(PythonExample, ReplaysAfterAnUpdateOfItsOffset) {
  LogNode node(Tcp::plain);
  const auto url = node.add("copy");
  const auto copy = (node.folder().path() / "copy.sqlite").string();
  node.publish(1, 5);
  ChildProcess follower({"/usr/bin/python3", kDocs + "/examples/follow.py", url, "copy", copy}, {});
  const auto head = node.sql("SELECT max(seq) FROM cn_relay.events_outbox");
  const auto caught_up = [&] {
    return node.sql("SELECT last_seq FROM cn_relay.consumer_offsets WHERE consumer = 'copy'") == head;
  };
  wait_until("the example to catch up", caught_up);
  const auto before = in_copy(copy, "SELECT topic_id, event_id, content FROM posts ORDER BY 1, 2");
  ASSERT_FALSE(before.empty());
  run_command({"/usr/bin/python3", "-c",
               "import sqlite3, sys\n"
               "with sqlite3.connect(sys.argv[1], timeout=30) as store: store.execute('DELETE FROM posts')",
               copy});
  SqlSession(url).run("UPDATE consumer_offsets SET last_seq = 0");
  wait_until("the replay", [&] {
    return in_copy(copy, "SELECT topic_id, event_id, content FROM posts ORDER BY 1, 2") == before &&
           caught_up();
  });
}

TEST(Examples, WaitWhileTheyArePaused) {
  LogNode node(Tcp::plain);
  const auto copy_url = node.add("copy");
  const auto feed_url = node.add("feed");
  node.sql("CREATE SCHEMA feed AUTHORIZATION consumer_feed");
  const auto copy = (node.folder().path() / "copy.sqlite").string();
  for (const auto* name : {"copy", "feed"}) ASSERT_EQ(node.todoke({"consumers", "pause", name}).code, 0);
  node.publish(1, 5);
  ChildProcess python({"/usr/bin/python3", kDocs + "/examples/follow.py", copy_url, "copy", copy}, {});
  ChildProcess psql({"psql", feed_url, "-X", "-f", kDocs + "/examples/follow.sql"}, {});
  wait_until("both to look", [&] {
    return node.sql(
               "SELECT count(DISTINCT usename) FROM pg_stat_activity WHERE usename IN ('consumer_copy', "
               "'consumer_feed') AND state = 'idle' AND query_start > backend_start") == "2" &&
           node.sql("SELECT to_regclass('feed.journal') IS NOT NULL") == "t";
  });
  EXPECT_EQ(node.sql("SELECT count(*) FROM feed.journal"), "0");
  EXPECT_EQ(in_copy(copy, "SELECT count(*) FROM journal").front(), "0");
  for (const auto* name : {"copy", "feed"}) ASSERT_EQ(node.todoke({"consumers", "resume", name}).code, 0);
  wait_until("both to catch up", [&] {
    return node.sql(
               "SELECT count(*) FROM cn_relay.consumer_offsets WHERE consumer IN ('copy', 'feed') AND "
               "last_seq = (SELECT max(seq) FROM cn_relay.events_outbox)") == "2";
  });
}

TEST(LogPage, HoldsTheExamplesWordForWord) {
  const auto page = contents(kDocs + "/log.md");
  EXPECT_THAT(page, testing::HasSubstr("```sql\n" + contents(kDocs + "/examples/follow.sql") + "```\n"));
  EXPECT_THAT(page, testing::HasSubstr("```python\n" + contents(kDocs + "/examples/follow.py") + "```\n"));
}

}  // namespace
}  // namespace todoke::test

// `todoke consumers` beside a running node: what each action does and says.
#include <csignal>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "log/rig.hpp"

namespace todoke::test {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

constexpr const char* kIndexedAll =
    "SELECT (SELECT last_seq FROM cn_relay.consumer_offsets WHERE consumer = 'index-v1') = "
    "(SELECT max(seq) FROM cn_relay.events_outbox)";

class Consumers : public testing::Test {
 protected:
  Exit consumers(std::vector<std::string> words) {
    words.insert(words.begin(), "consumers");
    return node.todoke(std::move(words));
  }
  std::string line_of(const std::string& consumer) {
    for (const auto& line : lines_of(consumers({"list"}).out)) {
      if (line.starts_with(consumer + " ")) return line;
    }
    return "";
  }
  void await_sql(const std::string& condition) {
    wait_until(condition, [&] { return node.sql(condition) == "t"; });
  }
  void without_index() {
    node.stop();
    node.start_roles("relay");
    EXPECT_EQ(
        node.sql("SELECT lease_until IS NULL FROM cn_relay.consumer_offsets WHERE consumer = 'index-v1'"),
        "t");
  }

  LogNode node{Tcp::closed};
};

TEST_F(Consumers, AreListedAndShownWithWhereTheyStand) {
  node.publish(1, 5);
  await_sql(kIndexedAll);
  static_cast<void>(node.add("feed", {"--mandatory"}));
  const auto head = node.sql("SELECT max(seq) FROM cn_relay.events_outbox");
  EXPECT_THAT(line_of("index-v1"),
              MatchesRegex(fmt::format("index-v1 +following +{} +0 +0 s  0  \\(mandatory\\)", head)));
  EXPECT_THAT(line_of("feed"), MatchesRegex("feed +outside +0 .*\\(mandatory\\)"));

  const auto index = consumers({"show", "index-v1"}).out;
  EXPECT_THAT(index, HasSubstr("consumer     index-v1, mandatory"));
  EXPECT_THAT(index, HasSubstr("state        following"));
  EXPECT_THAT(index, HasSubstr(fmt::format("offset       seq {} of {}", head, head)));
  EXPECT_THAT(index, HasSubstr("run by       "));
  EXPECT_THAT(consumers({"show", "feed"}).out, HasSubstr("run by       somebody outside"));
  const auto nobody = consumers({"show", "nobody"});
  EXPECT_EQ(nobody.code, 1);
  EXPECT_THAT(nobody.err, HasSubstr("there is no consumer nobody"));
}

TEST_F(Consumers, ThatArePausedTakeNothingUntilTheyAreResumed) {
  EXPECT_EQ(consumers({"pause", "index-v1"}).out, "paused index-v1\n");
  EXPECT_THAT(line_of("index-v1"), HasSubstr("paused"));
  const auto before = node.sql("SELECT last_seq FROM cn_relay.consumer_offsets WHERE consumer = 'index-v1'");
  node.publish(1, 5);
  EXPECT_EQ(node.sql("SELECT last_seq FROM cn_relay.consumer_offsets WHERE consumer = 'index-v1'"), before);
  EXPECT_EQ(consumers({"resume", "index-v1"}).out, "resumed index-v1\n");
  await_sql(kIndexedAll);
  EXPECT_EQ(consumers({"pause", "nobody"}).code, 1);
}

TEST_F(Consumers, FromOutsideCanNotMoveTheirOffsetWhileTheyArePaused) {
  node.publish(1, 3);
  SqlSession feed(node.add("feed"));
  const std::string move = "UPDATE cn_relay.consumer_offsets SET last_seq = 2, updated_at = now()";
  const auto paused = consumers({"pause", "feed"});
  EXPECT_EQ(paused.code, 0) << paused.err;
  EXPECT_THAT(paused.out, HasSubstr("its role can't move its offset"));
  EXPECT_THAT(line_of("feed"), HasSubstr("paused"));
  EXPECT_EQ(feed.tried(move), "55000");
  EXPECT_EQ(feed.tried("INSERT INTO cn_relay.consumer_offsets (consumer, last_seq) VALUES ('feed', 2) "
                       "ON CONFLICT (consumer) DO UPDATE SET last_seq = excluded.last_seq"),
            "55000");
  EXPECT_EQ(feed.value("SELECT last_seq FROM cn_relay.consumer_offsets WHERE paused FOR UPDATE"), "0");
  const auto replayed = consumers({"replay", "feed", "--from-seq", "1"});
  EXPECT_EQ(replayed.code, 1) << "the operator may, and the consumer goes on later";
  EXPECT_EQ(replayed.out, "feed goes on after seq 1\n");
  EXPECT_THAT(replayed.err, HasSubstr("feed is paused: it goes on after `todoke consumers resume feed`"));
  EXPECT_EQ(consumers({"replay", "feed", "--from-seq", "1", "--no-wait"}).code, 0);
  consumers({"resume", "feed"});
  feed.run(move);
  EXPECT_EQ(feed.value("SELECT last_seq FROM cn_relay.consumer_offsets"), "2");

  node.sql("INSERT INTO cn_relay.consumer_offsets (consumer, last_seq) VALUES ('by-hand', 0)");
  const auto refused = consumers({"pause", "by-hand"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("by-hand follows the log from outside and has no role of its own"));
  EXPECT_EQ(node.sql("SELECT paused FROM cn_relay.consumer_offsets WHERE consumer = 'by-hand'"), "f");
}

TEST_F(Consumers, AReplayRepeatsTheRowsAndEndsWhenTheConsumerHasCaughtUp) {
  node.publish(1, 20);
  await_sql(kIndexedAll);
  node.sql("DELETE FROM cn_search.post_search_documents");
  const auto replayed = consumers({"replay", "index-v1", "--from-seq", "0"});
  EXPECT_EQ(replayed.code, 0) << replayed.err;
  EXPECT_THAT(replayed.out, HasSubstr("index-v1 goes on after seq 0\n"));
  EXPECT_THAT(replayed.out, HasSubstr("index-v1 has caught up with seq "));
  EXPECT_EQ(node.sql("SELECT count(*) > 0 FROM cn_search.post_search_documents"), "t");

  node.sql("DELETE FROM cn_search.post_search_documents");
  EXPECT_EQ(consumers({"replay", "index-v1", "--from-time", "2020-01-01"}).code, 0);
  EXPECT_EQ(node.sql("SELECT count(*) > 0 FROM cn_search.post_search_documents"), "t");

  EXPECT_EQ(consumers({"replay", "index-v1"}).code, 2);
  EXPECT_EQ(consumers({"replay", "index-v1", "--from-time", "yesterday"}).code, 2);
  EXPECT_THAT(consumers({"replay", "index-v1", "--from-seq", "999999"}).err,
              HasSubstr("the log ends at seq"));
  node.sql("UPDATE cn_relay.log_floor SET dropped_until = 3");
  const auto gone = consumers({"replay", "index-v1", "--from-seq", "1"});
  EXPECT_EQ(gone.code, 1);
  EXPECT_THAT(gone.err, HasSubstr("todoke consumers rebuild index-v1"));
}

TEST_F(Consumers, AReplayOfAPausedConsumerSaysSoAtOnceAndHappensWhenItIsResumed) {
  node.publish(1, 5);
  await_sql(kIndexedAll);
  consumers({"pause", "index-v1"});
  const auto waited = consumers({"replay", "index-v1", "--from-seq", "0"});
  EXPECT_EQ(waited.code, 1);
  EXPECT_THAT(waited.err,
              HasSubstr("index-v1 is paused: it goes on after `todoke consumers resume index-v1`"));
  const auto told = consumers({"replay", "index-v1", "--from-seq", "0", "--no-wait"});
  EXPECT_EQ(told.code, 0);
  EXPECT_THAT(told.err, HasSubstr("index-v1 is paused"));
  consumers({"resume", "index-v1"});
  await_sql(kIndexedAll);
}

TEST_F(Consumers, AReplayOfOneFromOutsideIsLeftToIt) {
  node.append_by_sql(10);
  static_cast<void>(node.add("feed", {"--from", "head"}));
  const auto replayed = consumers({"replay", "feed", "--from-seq", "4"});
  EXPECT_EQ(replayed.code, 0) << replayed.err;
  EXPECT_THAT(replayed.out,
              HasSubstr("whoever follows the log under that name takes it with the next batch"));
  EXPECT_EQ(node.sql("SELECT last_seq FROM cn_relay.consumer_offsets WHERE consumer = 'feed'"), "4");
  EXPECT_THAT(consumers({"rebuild", "feed"}).err, HasSubstr("has to rebuild its own store"));
}

TEST_F(Consumers, ARebuildMakesTheStoreAnewAlsoOfAPausedOne) {
  node.publish(1, 20);
  await_sql(kIndexedAll);
  const auto documents =
      node.sql("SELECT count(*) FROM cn_search.post_search_documents WHERE deleted_at IS NULL");
  node.sql("DELETE FROM cn_search.post_search_documents");
  const auto rebuilt = consumers({"rebuild", "index-v1"});
  EXPECT_EQ(rebuilt.code, 0) << rebuilt.err;
  EXPECT_THAT(rebuilt.out, HasSubstr("rebuilt index-v1\n"));
  EXPECT_EQ(node.sql("SELECT count(*) FROM cn_search.post_search_documents"), documents);

  consumers({"pause", "index-v1"});
  const auto paused = consumers({"rebuild", "index-v1"});
  EXPECT_EQ(paused.code, 0) << paused.err;
  EXPECT_THAT(paused.err, HasSubstr("index-v1 is paused"));
}

TEST_F(Consumers, WithoutANodeThatRunsItsRoleAReplayAndARebuildSaySoAndAreKept) {
  node.publish(1, 5);
  await_sql(kIndexedAll);
  without_index();
  EXPECT_THAT(line_of("index-v1"), HasSubstr("not running"));
  EXPECT_THAT(consumers({"show", "index-v1"}).out, HasSubstr("no node; it belongs to the role index"));
  const auto replayed = consumers({"replay", "index-v1", "--from-seq", "0"});
  EXPECT_EQ(replayed.code, 1);
  EXPECT_THAT(replayed.err, HasSubstr("no node runs index-v1 (the role index) at the moment"));
  EXPECT_THAT(replayed.err, HasSubstr("start one with the role index; the replay waits for it"));
  EXPECT_THAT(consumers({"rebuild", "index-v1"}).err, HasSubstr("the rebuild waits for it"));
  EXPECT_EQ(consumers({"rebuild", "index-v1", "--no-wait"}).code, 0);
  node.stop();
  node.start(Tcp::closed);
  await_sql("SELECT state = 'live' FROM cn_relay.consumer_offsets WHERE consumer = 'index-v1'");
  await_sql(kIndexedAll);
}

TEST_F(Consumers, DeadLettersAreListedTriedAgainAndDropped) {
  EXPECT_EQ(consumers({"dead-letters", "index-v1"}).out, "0 dead letters\n");
  // A row that can't be indexed, whoever tries.
  node.sql(
      "CREATE FUNCTION cn_search.refuse() RETURNS trigger LANGUAGE plpgsql AS "
      "$$ BEGIN RAISE EXCEPTION 'this one is poison'; END $$; "
      "CREATE TRIGGER refuses BEFORE INSERT ON cn_search.post_search_documents "
      "FOR EACH ROW EXECUTE FUNCTION cn_search.refuse()");
  node.publish(1, 5);
  await_sql("SELECT count(*) > 0 FROM cn_relay.consumer_dead_letters");
  await_sql(kIndexedAll);
  const auto count = node.sql("SELECT count(*) FROM cn_relay.consumer_dead_letters");
  const auto listed = consumers({"dead-letters", "index-v1"}).out;
  EXPECT_THAT(listed, HasSubstr("5 tries, "));
  EXPECT_THAT(listed, HasSubstr("Z: this one is poison"));
  EXPECT_THAT(listed, HasSubstr(count + " dead letters\n"));
  EXPECT_THAT(line_of("index-v1"), HasSubstr("  " + count + "  (mandatory)"));

  const auto seq = node.sql("SELECT min(seq) FROM cn_relay.consumer_dead_letters");
  EXPECT_EQ(consumers({"dead-letters", "index-v1", "drop", seq}).out, "1 dropped\n");
  const auto again = consumers({"dead-letters", "index-v1", "drop", seq});
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.err, HasSubstr(seq + " is no dead letter of index-v1"));
  node.sql("DROP TRIGGER refuses ON cn_search.post_search_documents");
  EXPECT_THAT(consumers({"dead-letters", "index-v1", "retry"}).out, HasSubstr("will be tried again"));
  await_sql("SELECT count(*) = 0 FROM cn_relay.consumer_dead_letters");
  EXPECT_EQ(node.sql("SELECT count(*) > 0 FROM cn_search.post_search_documents"), "t");
  EXPECT_EQ(consumers({"dead-letters", "index-v1", "frobnicate"}).code, 2);
  EXPECT_EQ(consumers({"dead-letters", "index-v1", "retry", "x"}).code, 2);
}

TEST_F(Consumers, AreRemovedWithTheirRoleAndSessionsButNotWithWhatTheyOwnUnlessAsked) {
  const auto url = node.add("feed");
  SqlSession session(url);
  session.run("BEGIN; SELECT last_seq FROM cn_relay.consumer_offsets FOR UPDATE");
  node.sql("CREATE SCHEMA feed AUTHORIZATION consumer_feed");
  const auto refused = consumers({"remove", "feed"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err,
              HasSubstr("the role consumer_feed owns schema feed: --with-owned takes that away too"));
  EXPECT_EQ(session.value("SELECT 1"), "1");

  EXPECT_EQ(consumers({"remove", "feed", "--with-owned"}).out, "removed feed\n");
  EXPECT_THROW(session.run("SELECT 1"), std::runtime_error);
  EXPECT_EQ(node.sql("SELECT count(*) FROM pg_roles WHERE rolname = 'consumer_feed'"), "0");
  EXPECT_EQ(node.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'feed'"), "0");
  EXPECT_EQ(line_of("feed"), "");
  EXPECT_EQ(consumers({"remove", "feed"}).code, 1);
  static_cast<void>(node.add("feed"));
  EXPECT_EQ(consumers({"remove", "feed"}).code, 0);
}

TEST_F(Consumers, OfTheNodeItselfAreNotRemovedWhileItRunsThemAndTheirNamesAreNobodyElses) {
  const auto refused = consumers({"remove", "index-v1"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("a node runs index-v1"));
  without_index();
  const auto removed = consumers({"remove", "index-v1"});
  EXPECT_EQ(removed.code, 0) << removed.err;
  EXPECT_THAT(removed.err, HasSubstr("it comes back as soon as a node runs the role index"));
  for (const char* const name : {"index-v1", "index-v2", "index"}) {
    EXPECT_THAT(consumers({"add", name}).err, HasSubstr("is a consumer of the node itself")) << name;
  }
  static_cast<void>(node.add("index-of-mine"));
}

TEST(CommandsOnTheDatabase, StartNothingAndMakeNothingWhereNoNodeRuns) {
  const TempFolder folder;
  const auto data = (folder.path() / "data").string();
  for (const std::vector<std::string>& words : {std::vector<std::string>{"consumers", "list"},
                                                {"consumers", "add", "x"},
                                                {"topic", "list"},
                                                {"topic", "enable", "Bitcoin"},
                                                {"audit"}}) {
    auto command = words;
    command.insert(command.begin(), todoke_binary());
    command.insert(command.end(), {"--data_dir", data});
    const auto exit = run_command(command);
    EXPECT_EQ(exit.code, 1) << words[0];
    EXPECT_THAT(exit.err, HasSubstr("no node runs on " + data)) << words[0];
  }
  EXPECT_FALSE(std::filesystem::exists(data));
}

}  // namespace
}  // namespace todoke::test

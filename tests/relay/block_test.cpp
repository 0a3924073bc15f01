// What the operator keeps out: `todoke block`, and what the relays of the database make of it.
#include <fstream>

#include <fmt/format.h>

#include "harness/todoke_process.hpp"
#include "support.hpp"

namespace todoke::test {
namespace {

using testing::Not;

constexpr auto* kAuthorBlocked = "blocked: author not taken here";
constexpr auto* kEventBlocked = "blocked: event not taken here";
constexpr auto* kTopicBlocked = "blocked: topic not taken here";
constexpr auto* kAddressBlocked = "blocked: address not served";

// As behind a proxy that the node knows.
const Flags kBehindProxy = {{"server.trusted_proxies", "127.0.0.1"}};

net::WsClientOptions coming_from(const std::string& ip) {
  net::WsClientOptions options;
  options.headers.add("X-Forwarded-For", ip);
  return options;
}

class BlockTest : public TopicsTest {
 protected:
  Exit block(std::vector<std::string> words) {
    words.insert(words.begin(), {todoke_binary(), "block"});
    words.insert(words.end(), {"--data_dir", folder.path().string()});
    return run_command(words, {"DATABASE_URL=" + rig.database()->url()});
  }
  std::string done(std::vector<std::string> words) {
    const auto exit = block(std::move(words));
    EXPECT_EQ(exit.code, 0) << exit.err;
    return exit.out;
  }
  std::string refused(std::vector<std::string> words, int code = 1) {
    const auto exit = block(std::move(words));
    EXPECT_EQ(exit.code, code) << exit.out;
    return exit.err;
  }
  // The relay hears of it a moment after the command has ended.
  void await_blocks(const std::string& kind, double count) {
    EXPECT_TRUE(rig.await_metric(fmt::format("todoke_blocks{{kind=\"{}\"}}", kind), count));
  }
  [[nodiscard]] std::string actions() const {
    return rig.value("SELECT coalesce(string_agg(action, ',' ORDER BY id), '') FROM cn_admin.audit");
  }

  TempFolder folder;
};

TEST_F(BlockTest, ABlockedAuthorIsRefusedUntilTheBlockIsRemovedAndStoredEventsStay) {
  const auto before = global_note(alice, "before");
  const auto later = global_note(alice, "later");
  store(before);
  EXPECT_THAT(done({"add", "pubkey", hex_of(alice), "--reason", "spam"}), StartsWith("blocked pubkey "));
  await_blocks("pubkey", 1);
  EXPECT_EQ(refusal_of(later), kAuthorBlocked);
  EXPECT_EQ(refusal_of(before), kAuthorBlocked);
  store(global_note(bob, "of another", {{"p", hex_of(alice)}}));
  EXPECT_THAT(client.stored(by_id(before)).ids, ElementsAre(hex_of(before)));
  EXPECT_EQ(rig.metric("todoke_ingest_rejected_total{reason=\"author_blocked\"}"), 2);
  EXPECT_THAT(done({"remove", "pubkey", hex_of(alice)}), StartsWith("no longer blocked: pubkey "));
  await_blocks("pubkey", 0);
  store(later);
}

TEST_F(BlockTest, ABlockedEventIsGoneAtOnceFromStoredReadsCountsAndMemory) {
  const auto event = global_note(alice, "gone", {{"x", "1"}});
  const auto stays = global_note(alice, "stays", {{"x", "1"}});
  store(event);
  store(stays);
  EXPECT_THAT(client.stored(kGlobal).ids.size(), 2U);
  EXPECT_THAT(done({"add", "event", hex_of(event)}), HasSubstr(", deleted\n"));
  EXPECT_TRUE(await([&] { return client.stored(kGlobal).ids == Ids{hex_of(stays)}; }));
  EXPECT_THAT(client.stored(by_id(event)).ids, IsEmpty());
  EXPECT_THAT(client.stored(global_and(R"("#x":["1"])")).ids, ElementsAre(hex_of(stays)));
  EXPECT_EQ(client.count("c", kGlobal), R"(["COUNT","c",{"count":1}])");
  EXPECT_EQ(log_of(event), Rows({"upsert|kukuri:global|", "delete|kukuri:global|operator"}));
  await_blocks("event", 1);
  EXPECT_EQ(refusal_of(event), kEventBlocked);
  // Its row is there for operators, until it is erased.
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.events WHERE deleted_at IS NOT NULL"), "1");
  // And stays deleted.
  done({"remove", "event", hex_of(event)});
  await_blocks("event", 0);
  EXPECT_EQ(refusal_of(event), "accepted: duplicate: already stored");
  EXPECT_THAT(client.stored(by_id(event)).ids, IsEmpty());
}

TEST_F(BlockTest, ABlockedVersionDoesNotBringBackAnOlderOne) {
  const auto older = global_note(alice, "older", {{"d", "x"}}, 30023, kTime);
  const auto newer = global_note(alice, "newer", {{"d", "x"}}, 30023, kTime + 1);
  store(older);
  store(newer);
  done({"add", "event", hex_of(newer)});
  EXPECT_TRUE(await([&] { return client.stored(global_and(R"("kinds":[30023])")).ids.empty(); }));
  EXPECT_EQ(refusal_of(older), "duplicate: newer version stored");
  store(global_note(alice, "newest", {{"d", "x"}}, 30023, kTime + 2));
}

TEST_F(BlockTest, AnEventMayBeBlockedBeforeItComes) {
  const auto event = global_note(alice, "not yet there");
  EXPECT_THAT(done({"add", "event", hex_of(event)}), HasSubstr(", not stored or deleted before\n"));
  await_blocks("event", 1);
  EXPECT_EQ(refusal_of(event), kEventBlocked);
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.events_outbox"), "0");
  done({"remove", "event", hex_of(event)});
  await_blocks("event", 0);
  store(event);
}

TEST_F(BlockTest, ErasingAnEventLeavesNothingOfIt) {
  const auto event = global_note(alice, std::string("a\0b", 3), {{"x", std::string("\0", 1)}});
  store(event);
  EXPECT_THAT(done({"add", "event", hex_of(event), "--erase"}), HasSubstr(", erased\n"));
  EXPECT_EQ(
      rig.sql("SELECT count(*) FROM cn_relay.events UNION ALL SELECT count(*) FROM cn_relay.event_topics "
              "UNION ALL SELECT count(*) FROM cn_relay.event_tags"),
      Rows({"0", "0", "0"}));
  EXPECT_TRUE(await([&] { return client.stored(kGlobal).ids.empty(); }));
  EXPECT_EQ(rig.value("SELECT erased_at IS NOT NULL FROM cn_relay.blocks"), "t");
  EXPECT_EQ(rig.value("SELECT sum(events) FROM cn_relay.topic_usage WHERE topic_id = ''"), "0");
}

TEST_F(BlockTest, ErasingAnAuthorTakesEverythingOfTheirsAndNothingElse) {
  std::vector<Event> mine;
  for (int i = 0; i < 5; ++i) mine.push_back(global_note(alice, std::to_string(i), {{"x", "1"}}));
  mine.push_back(global_note(alice, "{}", {}, 0));
  mine.push_back(note(alice, "", {{"relay", "ALL_RELAYS"}}, nostr::kVanish, kTime));
  for (const auto& event : mine) store(event);
  const auto deletion = deletion_of(alice, {{"e", hex_of(mine[0])}});
  store(deletion);
  const auto others = global_note(bob, "about alice", {{"p", hex_of(alice)}});
  store(others);
  EXPECT_THAT(done({"add", "pubkey", hex_of(alice), "--erase"}),
              HasSubstr("erased what was stored of pubkey "));
  EXPECT_EQ(rig.sql("SELECT event_id FROM cn_relay.events"), Rows{hex_of(others)});
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.current_versions"), "0");
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.event_tags WHERE name = 'x'"), "0");
  EXPECT_TRUE(await([&] { return client.stored(kGlobal).ids == Ids{hex_of(others)}; }));
  EXPECT_EQ(log_of(mine[1]), Rows({"upsert|kukuri:global|", "delete|kukuri:global|operator"}));
  EXPECT_EQ(rig.metric("todoke_blocks_erased_total"), static_cast<double>(mine.size() + 1));
  EXPECT_EQ(refusal_of(mine[1]), kAuthorBlocked);
}

TEST_F(BlockTest, ErasingATopicTakesTheEventsThatNameIt) {
  const auto spam = topic('1');
  enable_topic(rig, spam);
  store(global_note(alice, "both", {{"t", spam}}));
  store(note(alice, "one", {{"t", spam}}));
  const auto other = global_note(alice, "other");
  store(other);
  EXPECT_THAT(done({"add", "topic", spam, "--erase"}), HasSubstr("erased what was stored of topic " + spam));
  EXPECT_EQ(rig.sql("SELECT event_id FROM cn_relay.events"), Rows{hex_of(other)});
  await_blocks("topic", 1);
  EXPECT_EQ(refusal_of(global_note(bob, "", {{"t", spam}})), kTopicBlocked);
  store(global_note(bob, ""));
}

TEST_F(BlockTest, AnImportIsRefusedTheSame) {
  const auto blocked = global_note(alice, "blocked");
  const auto other = global_note(bob, "other");
  done({"add", "pubkey", hex_of(alice)});
  const auto file = (folder.path() / "events.jsonl").string();
  std::ofstream(file) << blocked.json() << '\n' << other.json() << '\n';
  const auto exit = run_command({todoke_binary(), "import", file, "--data_dir", folder.path().string()},
                                {"DATABASE_URL=" + rig.database()->url()});
  EXPECT_EQ(exit.code, 0) << exit.err;
  EXPECT_THAT(exit.err, HasSubstr(fmt::format("line 1: {}", kAuthorBlocked)));
  EXPECT_THAT(exit.err, HasSubstr("1 events stored"));
  EXPECT_EQ(rig.sql("SELECT event_id FROM cn_relay.events"), Rows{hex_of(other)});
}

TEST(BlockSearchTest, ABlockedEventIsNotFoundAndLeavesTheIndex) {
  const RelayRig rig(NodeRigOptions{.roles = {"index"}, .flags = kOpen});
  NostrClient client(rig.url());
  const auto post = note(SecretKey::generate(), "a quick fox", {});
  store_at(client, post);
  rig.await_index();
  EXPECT_THAT(client.stored(R"({"search":"quick"})").ids, ElementsAre(hex_of(post)));
  const TempFolder folder;
  EXPECT_EQ(run_command({todoke_binary(), "block", "add", "event", hex_of(post), "--data_dir",
                         folder.path().string()},
                        {"DATABASE_URL=" + rig.database()->url()})
                .code,
            0);
  EXPECT_THAT(client.stored(R"({"search":"quick"})").ids, IsEmpty());
  rig.await_index();
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_search.post_search_documents WHERE tokens <> ''"), "0");
}

// The node has to be told: what it would do with events without a topic is not meant.
TEST(BlockOpenTest, TheTopicOfAllOthersIsNotErased) {
  const RelayRig rig(kOpen);
  const TempFolder folder;
  const auto exit = run_command({todoke_binary(), "block", "add", "topic", "kukuri:global", "--erase",
                                 "--relay.topic_policy", "open", "--data_dir", folder.path().string()},
                                {"DATABASE_URL=" + rig.database()->url()});
  EXPECT_EQ(exit.code, 1);
  EXPECT_THAT(exit.err, HasSubstr("--erase would take them all"));
}

// A relay that has not heard yet, or whose events were on their way to the store.
TEST_F(BlockTest, TheStoreRefusesWhatARelayHasTakenBeforeItHeard) {
  const auto event = global_note(bob, "the event");
  rig.sql("ALTER TABLE cn_relay.blocks DISABLE TRIGGER notifies");
  SqlSession holder(rig.database()->url());
  holder.run("BEGIN");
  holder.run("SELECT pg_advisory_xact_lock(cn_names.lock_log())");
  client.send(fmt::format(R"(["EVENT",{}])", global_note(alice, "").json()));
  client.send(fmt::format(R"(["EVENT",{}])", event.json()));
  client.send(fmt::format(R"(["EVENT",{}])", global_note(bob, "another").json()));
  EXPECT_EQ(rig.await_sql("SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND "
                          "application_name = 'todoke writer' AND wait_event = 'advisory'",
                          {"t"}),
            Rows{"t"});
  holder.run(fmt::format("INSERT INTO cn_relay.blocks (kind, value) VALUES ('pubkey', '{}'), ('event', '{}')",
                         hex_of(alice), hex_of(event)));
  holder.run("COMMIT");
  std::vector<std::string> texts;
  for (int i = 0; i < 3; ++i) texts.push_back(parse_ok(client.receive(R"(["OK")")).text);
  EXPECT_THAT(texts, testing::UnorderedElementsAre(kAuthorBlocked, kEventBlocked, ""));
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.events"), "1");
  // One that is over does not count.
  rig.sql("UPDATE cn_relay.blocks SET until = now() - interval '1 second'");
  store(event);
}

TEST(BlockAddressTest, ABlockedAddressCanNotConnectAndItsConnectionsEnd) {
  RelayRig rig(kBehindProxy);
  NostrClient inside(rig.url(), coming_from("192.0.2.7"));
  NostrClient other(rig.url(), coming_from("198.51.100.1"));
  rig.sql("INSERT INTO cn_relay.blocks (kind, value) VALUES ('ip', '192.0.2.0/24')");
  EXPECT_EQ(inside.receive(), fmt::format(R"(["NOTICE","{}"])", kAddressBlocked));
  EXPECT_EQ(inside.receive_or_end(), std::nullopt);
  EXPECT_EQ(inside.close_code(), 1008);
  NostrClient again(rig.url(), coming_from("192.0.2.200"), Greeting::none);
  EXPECT_EQ(again.receive(), fmt::format(R"(["NOTICE","{}"])", kAddressBlocked));
  EXPECT_EQ(again.receive_or_end(), std::nullopt);
  EXPECT_EQ(rig.metric("todoke_blocks_connections_refused_total"), 2);
  EXPECT_THAT(other.stored(kGlobal).closed, "");
  rig.sql("DELETE FROM cn_relay.blocks");
  EXPECT_TRUE(rig.await_metric(R"(todoke_blocks{kind="ip"})", 0));
  const NostrClient back(rig.url(), coming_from("192.0.2.7"));
}

TEST_F(TwoRelaysTest, ABlockHoldsOnEveryRelayOfTheDatabase) {
  a.sql(fmt::format("INSERT INTO cn_relay.blocks (kind, value) VALUES ('pubkey', '{}')", hex_of(alice)));
  for (auto* rig : {&a, &b}) EXPECT_TRUE(rig->await_metric(R"(todoke_blocks{kind="pubkey"})", 1));
  for (auto* at : {&at_a, &at_b}) EXPECT_EQ(at->publish(global_note(alice, "")).text, kAuthorBlocked);
}

TEST_F(BlockTest, BlocksAreReadAtTheStartToo) {
  rig.sql(fmt::format(
      "INSERT INTO cn_relay.blocks (kind, value) SELECT 'event', encode(sha256(n::text::bytea), 'hex') "
      "FROM generate_series(1, 2500) n"));
  rig.sql(fmt::format("INSERT INTO cn_relay.blocks (kind, value) VALUES ('pubkey', '{}')", hex_of(alice)));
  rig.stop();
  rig.start();
  EXPECT_EQ(rig.metric(R"(todoke_blocks{kind="event"})"), 2500);
  EXPECT_EQ(NostrClient(rig.url()).publish(global_note(alice, "")).text, kAuthorBlocked);
}

TEST_F(BlockTest, EveryChangeIsInTheAuditWithWhoMadeIt) {
  done({"add", "pubkey", hex_of(alice), "--reason", "spam"});
  done({"add", "pubkey", hex_of(alice), "--until", "2099-01-01T00:00:00Z"});
  rig.sql("UPDATE cn_relay.blocks SET reason = 'by hand'");
  rig.sql("UPDATE cn_relay.blocks SET pass = 1, moved = true");
  done({"remove", "pubkey", hex_of(alice)});
  EXPECT_EQ(actions(), "block add,block change,block change,block remove");
  EXPECT_EQ(rig.sql("SELECT subject, actor ~ '^operator:.', after ->> 'reason' FROM cn_admin.audit ORDER BY "
                    "id LIMIT 1"),
            Rows{fmt::format("pubkey {}|t|spam", hex_of(alice))});
  EXPECT_EQ(rig.value("SELECT actor ~ '^sql:' FROM cn_admin.audit ORDER BY id OFFSET 2 LIMIT 1"), "t");
  SqlSession session(rig.database()->url());
  for (const auto* change : {"UPDATE cn_admin.audit SET actor = 'x'", "DELETE FROM cn_admin.audit",
                             "TRUNCATE cn_admin.audit", "TRUNCATE cn_relay.blocks"}) {
    EXPECT_EQ(session.tried(change), "42501") << change;
  }
}

TEST_F(BlockTest, TheListShowsThemAsATableAndAsJson) {
  EXPECT_EQ(done({"list", "--json"}), "[]\n");
  done({"add", "ip", "10.1.2.3/8", "--reason", "a \"bad\" network", "--until", "2099-01-01T00:00:00Z"});
  done({"add", "pubkey", hex_of(alice)});
  const auto table = done({"list"});
  EXPECT_THAT(table, HasSubstr("10.0.0.0/8"));
  EXPECT_THAT(table, HasSubstr("2099-01-01T00:00:00Z"));
  EXPECT_THAT(table, HasSubstr(hex_of(alice)));
  const auto json = done({"list", "ip", "--json"});
  EXPECT_THAT(json,
              HasSubstr(R"([{"kind":"ip","value":"10.0.0.0/8","reason":"a \"bad\" network","added_at":")"));
  EXPECT_THAT(json,
              HasSubstr(R"("until":"2099-01-01T00:00:00Z","over":false,"erase_at":null,"erased_at":null}])"));
}

TEST_F(BlockTest, BadInputIsExplained) {
  EXPECT_THAT(refused({}, 2), HasSubstr("block: say add, remove or list"));
  EXPECT_THAT(refused({"add", "pubkey"}, 2), HasSubstr("say pubkey, event, ip or topic, and one value"));
  EXPECT_THAT(refused({"add", "person", "x"}, 2),
              HasSubstr("'person' is none of pubkey, event, ip and topic"));
  EXPECT_THAT(refused({"add", "pubkey", "npub1x"}), HasSubstr("'npub1x' is no public key: 64 hex digits"));
  EXPECT_THAT(refused({"add", "ip", "300.1.1.1"}), HasSubstr("is no address or block such as 10.0.0.0/8"));
  EXPECT_THAT(refused({"add", "ip", "10.0.0.1", "--erase"}, 2), HasSubstr("nothing is stored of an address"));
  EXPECT_THAT(refused({"add", "pubkey", hex_of(alice), "--until", "2020-01-01"}), HasSubstr("is over"));
  EXPECT_THAT(refused({"add", "pubkey", hex_of(alice), "--until", "soon"}, 2), HasSubstr("--until"));
  EXPECT_THAT(refused({"add", "pubkey", hex_of(alice), "--reason", std::string(1025, 'x')}),
              HasSubstr("1024 are the most"));
  EXPECT_THAT(refused({"remove", "pubkey", hex_of(alice)}), HasSubstr("is not blocked"));
  EXPECT_THAT(refused({"remove", "pubkey", hex_of(alice), "--erase"}, 2), Not(IsEmpty()));
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.blocks"), "0");
}

TEST_F(BlockTest, ATopicIsNamedByItsName) {
  const std::string bitcoin = "kukuri:6a54d8878560a94315b9b702f62f989ee2e1ee75a8b04e5b5d372e9877f27eb3";
  EXPECT_THAT(done({"add", "topic", "Bitcoin"}), HasSubstr("blocked topic " + bitcoin));
  await_blocks("topic", 1);
  EXPECT_EQ(refusal_of(note(alice, "", {{"t", bitcoin}, {"t", "kukuri:global"}})), kTopicBlocked);
  EXPECT_THAT(done({"add", "topic", "Bitcoin"}), HasSubstr("blocked already, changed: topic " + bitcoin));
}

TEST_F(BlockTest, AnErasureThatNobodyWaitsForIsDoneByTheRelays) {
  store(global_note(alice, ""));
  EXPECT_THAT(done({"add", "pubkey", hex_of(alice), "--erase", "--no-wait"}),
              HasSubstr("relays erase what is stored"));
  rig.await_sql("SELECT erased_at IS NOT NULL FROM cn_relay.blocks", {"t"});
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.events"), "0");
}

// What the pass has read is moved behind it: retire() and keep_events() say so.
TEST(BlockPassTest, ARowThatMovesDuringTheErasureIsFoundByTheNextPass) {
  const auto alice = SecretKey::generate();
  const auto moves = {
      "SELECT cn_relay.keep_events(array_agg(event_id), array_agg(ingested_at)) FROM cn_relay.events",
      "SELECT cn_relay.retire(event_id, ingested_at, lifetime, 'deleted') FROM cn_relay.events"};
  for (const auto* move : moves) {
    for (const std::string kind : {"pubkey", "topic"}) {
      RelayRig rig;
      {
        NostrClient client(rig.url());
        store_at(client, global_note(alice, kind));
      }
      rig.stop();
      rig.sql(fmt::format(
          "INSERT INTO cn_relay.blocks (kind, value, erase_at, pass) VALUES ('{}', '{}', now(), 1)", kind,
          kind == "topic" ? "kukuri:global" : hex_of(alice)));
      // As if the pass had read everything before it came there.
      rig.sql("UPDATE cn_relay.erase_pass SET number = 1, under_way = true, next_block = 1, events_end = 1");
      rig.sql(move);
      EXPECT_EQ(rig.value("SELECT moved FROM cn_relay.blocks"), "t") << kind << move;
      rig.start();
      EXPECT_EQ(rig.await_sql("SELECT erased_at IS NOT NULL FROM cn_relay.blocks", {"t"}), Rows{"t"});
      EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.events"), "0") << kind << move;
    }
  }
}

}  // namespace
}  // namespace todoke::test

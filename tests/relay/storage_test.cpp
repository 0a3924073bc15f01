// What the tables hold after what came over the wire.
#include <fmt/format.h>

#include "support.hpp"

namespace todoke::test {
namespace {

class StorageTest : public TopicsTest {};

TEST_F(StorageTest, EventIsStoredWithEverythingItIsMadeOf) {
  const auto event = global_note(alice, "hello \\ \"world\"", {{"p", hex_of(bob), "relay"}, {"x"}}, 1, kTime);
  store(event);
  EXPECT_EQ(
      rig.sql(
          "SELECT event_id, pubkey, kind, created_at, tags, content, sig, source, expires_at, deleted_at, "
          "superseded_at, raw, effective_key FROM cn_relay.events"),
      Rows{fmt::format("{}|{}|1|{}|{}|hello \\ \"world\"|{}|ws|||||", hex_of(event), hex_of(alice), kTime,
                       event.tags_json(), event.sig().hex())});
  EXPECT_EQ(rig.value("SELECT abs(extract(epoch FROM now() - ingested_at)) < 60 FROM cn_relay.events"), "t");
  EXPECT_EQ(
      rig.value("SELECT e.ingested_seq = o.seq AND e.ingested_at = o.ingested_at FROM cn_relay.events e, "
                "cn_relay.events_outbox o"),
      "t");
}

TEST_F(StorageTest, FirstLogRowGivesTheEventItsSeq) {
  enable_topic(rig, topic('1'));
  enable_topic(rig, topic('2'));
  const auto older = global_note(alice, "", {{"t", topic('1')}, {"t", topic('2')}}, 10002, kTime);
  const auto newer = global_note(alice, "", {{"t", topic('2')}}, 10002, kTime + 1);
  store(older);
  store(newer);
  for (const auto* event : {&older, &newer}) {
    EXPECT_EQ(
        rig.value(fmt::format("SELECT e.ingested_seq = (SELECT min(seq) FROM cn_relay.events_outbox o WHERE "
                              "o.event_id = e.event_id) FROM cn_relay.events e WHERE event_id = '{}'",
                              hex_of(*event))),
        "t");
  }
  EXPECT_EQ(rig.value("SELECT count(*) = max(seq) - min(seq) + 1 FROM cn_relay.events_outbox"), "t");
}

TEST_F(StorageTest, LinksHoldWhatTopicQueriesNeed) {
  const auto at = unix_now() + 3'600;
  const auto event = global_note(alice, "", {{"expiration", std::to_string(at)}}, 7, kTime);
  store(event);
  EXPECT_EQ(rig.sql("SELECT topic_id, event_id, kind, created_at, extract(epoch FROM expires_at)::bigint, "
                    "non_public FROM cn_relay.event_topics"),
            Rows{fmt::format("kukuri:global|{}|7|{}|{}|f", hex_of(event), kTime, at)});
}

TEST_F(StorageTest, EveryTagOfOneLetterIsIndexedOnce) {
  const auto event = global_note(alice, "",
                                 {{"p", hex_of(bob)},
                                  {"x", "1"},
                                  {"x", "1"},
                                  {"X", "1"},
                                  {"x", "2", "3"},
                                  {"x"},
                                  {"xx", "1"},
                                  {"1", "1"},
                                  {"t", "hashtag"},
                                  {"r", std::string(257, 'l')}});
  store(event);
  EXPECT_EQ(rig.sql("SELECT name, value FROM cn_relay.event_tags ORDER BY name::text COLLATE \"C\", value"),
            Rows({"X|1", "p|" + hex_of(bob),
                  "r|" + rig.value(fmt::format("SELECT cn_relay.tag_value_key('{}')", std::string(257, 'l'))),
                  "t|hashtag", "x|1", "x|2"}));
}

TEST_F(StorageTest, NulIsKeptInRaw) {
  const auto event = global_note(alice, std::string("a\0b", 3), {{"x", std::string("\0", 1)}});
  const auto plain = global_note(alice, "plain \\u0000");
  store(event);
  store(plain);
  EXPECT_EQ(rig.sql("SELECT content, convert_from(raw, 'UTF8') FROM cn_relay.events ORDER BY ingested_seq"),
            Rows({"a\uFFFDb|" + std::string(event.json()), "plain \\u0000|"}));
}

TEST_F(StorageTest, CurrentVersionsAreKeptByKey) {
  const auto profile = global_note(alice, "profile", {}, 0, kTime);
  const auto article = global_note(alice, "article", {{"d", "a:b"}}, 30023, kTime);
  store(profile);
  store(article);
  EXPECT_EQ(
      rig.sql("SELECT effective_key, event_id, pubkey, kind, created_at FROM cn_relay.replaceable_current"),
      Rows{fmt::format("0:{0}:|{1}|{0}|0|{2}", hex_of(alice), hex_of(profile), kTime)});
  EXPECT_EQ(
      rig.sql("SELECT effective_key, event_id, pubkey, kind, created_at FROM cn_relay.addressable_current"),
      Rows{fmt::format("30023:{0}:a:b|{1}|{0}|30023|{2}", hex_of(alice), hex_of(article), kTime)});
  EXPECT_EQ(rig.value("SELECT event_json FROM cn_relay.addressable_current"), article.json());
}

TEST_F(StorageTest, DeletionsAreKeptForTargetsThatAreNotThere) {
  const auto id = std::string(64, 'e');
  const auto address = fmt::format("30023:{}:x", hex_of(alice));
  const auto request =
      deletion_of(alice, {{"e", id}, {"a", address}, {"a", fmt::format("30023:{}:x", hex_of(bob))}}, kTime);
  store(request);
  EXPECT_EQ(
      rig.sql("SELECT pubkey, target_event_id, target_a, deletion_event_id, created_at, applied_at FROM "
              "cn_relay.deletion_tombstones ORDER BY target_a NULLS FIRST"),
      Rows({fmt::format("{}|{}||{}|{}|", hex_of(alice), id, hex_of(request), kTime),
            fmt::format("{}||{}|{}|{}|", hex_of(alice), address, hex_of(request), kTime)}));
}

TEST_F(StorageTest, DuplicatesAreCountedAndWrittenLater) {
  const auto event = global_note(alice, "seen often");
  store(event);
  for (int i = 0; i < 4; ++i) client.publish(event);
  NostrClient other(rig.url());
  other.publish(event);
  const auto count = fmt::format(
      "SELECT seen_count, last_seen_at > first_seen_at FROM cn_relay.event_dedupe WHERE "
      "event_id = '{}'",
      hex_of(event));
  rig.stop();
  EXPECT_EQ(rig.sql(count), Rows{"6|t"});
  // Also by a relay that finds it in the table only.
  rig.start();
  NostrClient again(rig.url());
  EXPECT_EQ(again.publish(event).text, "duplicate: already stored");
  rig.stop();
  EXPECT_EQ(rig.sql(count), Rows{"7|t"});
}

TEST_F(StorageTest, DuplicatesAreWrittenWhileTheRelayRuns) {
  const auto event = global_note(alice, "seen twice");
  store(event);
  client.publish(event);
  EXPECT_EQ(rig.await_sql("SELECT seen_count FROM cn_relay.event_dedupe", {"2"}), Rows{"2"});
}

TEST_F(StorageTest, EffectiveViewIsWhatIsServed) {
  std::vector<Event> kept;
  for (int i = 0; i < 3; ++i) kept.push_back(global_note(alice, std::to_string(i), {}, 1, kTime + i));
  for (const auto& event : kept) store(event);
  const auto gone = global_note(alice, "gone", {}, 1, kTime);
  store(gone);
  const auto request = deletion_of(alice, {{"e", hex_of(gone)}}, kTime - 1);
  store(request);
  store(global_note(alice, "v1", {}, 0, kTime));
  const auto profile = global_note(alice, "v2", {}, 0, kTime + 5);
  store(profile);
  const auto served = client.stored(kGlobal).ids;
  EXPECT_EQ(served,
            rig.sql("SELECT event_id FROM cn_relay.effective_events ORDER BY created_at DESC, event_id"));
  EXPECT_EQ(served, hexes_of({profile, kept[2], kept[1], kept[0], request}));
}

TEST_F(StorageTest, LogAndEventsAgreeAfterABurst) {
  std::vector<Event> events;
  for (int i = 0; i < 300; ++i) {
    events.push_back(i % 5 == 0 ? global_note(alice, "", {{"d", std::to_string(i % 3)}}, 30023, kTime + i)
                                : global_note(alice, std::to_string(i)));
  }
  for (const auto& event : events) client.send(fmt::format(R"(["EVENT",{}])", event.json()));
  std::size_t stored = 0;
  for (std::size_t i = 0; i < events.size(); ++i) stored += parse_ok(client.receive()).accepted ? 1U : 0U;
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.events"), std::to_string(stored));
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.events_outbox WHERE op = 'upsert'"),
            std::to_string(stored));
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.event_dedupe"), std::to_string(stored));
  // What the log says in the end is what is in effect.
  EXPECT_EQ(
      rig.value(
          "SELECT count(*) FROM (SELECT DISTINCT ON (event_id) event_id, op FROM cn_relay.events_outbox "
          "ORDER BY event_id, seq DESC) l FULL JOIN cn_relay.effective_events e USING (event_id) "
          "WHERE (l.op = 'upsert') IS DISTINCT FROM (e.kind IS NOT NULL)"),
      "0");
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.event_topics"),
            rig.value("SELECT count(*) FROM cn_relay.effective_events"));
}

}  // namespace
}  // namespace todoke::test

// NIP-09: what a deletion request takes away, from whom, and for how long.
#include <fmt/format.h>

#include "support.hpp"

namespace todoke::test {
namespace {

class DeletionTest : public TopicsTest {
 protected:
  bool is_served(const Event& event) { return !client.stored(by_id(event)).ids.empty(); }
  std::string address_of(const Event& event, const std::string& d = "") {
    return fmt::format("{}:{}:{}", event.kind(), event.pubkey().hex(), d);
  }
  Event article(const std::string& content, std::int64_t time) {
    return global_note(alice, content, {{"d", "x"}}, 30023, time);
  }
};

TEST_F(DeletionTest, AuthorDeletesById) {
  const auto event = global_note(alice, "regretted");
  const auto other = global_note(alice, "not regretted");
  store(event);
  store(other);
  const auto request = deletion_of(alice, {{"e", hex_of(event)}, {"k", "1"}});
  store(request);
  EXPECT_FALSE(is_served(event));
  EXPECT_TRUE(is_served(other));
  EXPECT_TRUE(is_served(request));
  EXPECT_EQ(client.count("c", kGlobal), R"(["COUNT","c",{"count":2}])");
}

TEST_F(DeletionTest, DeletedEventIsBlockedForEver) {
  const auto event = global_note(alice, "regretted");
  store(event);
  const auto request = deletion_of(alice, {{"e", hex_of(event)}});
  store(request);
  EXPECT_EQ(refusal_of(event), "blocked: deleted by author");
  NostrClient other(rig.url());
  EXPECT_EQ(other.publish(event).text, "blocked: deleted by author");
  // Deleting the request does not undo it.
  store(deletion_of(alice, {{"e", hex_of(request)}, {"k", "5"}}));
  EXPECT_TRUE(is_served(request));
  EXPECT_FALSE(is_served(event));
  EXPECT_EQ(refusal_of(event), "blocked: deleted by author");
  rig.stop();
  rig.start();
  NostrClient after(rig.url());
  EXPECT_EQ(after.publish(event).text, "blocked: deleted by author");
}

TEST_F(DeletionTest, RequestMayComeBeforeItsTarget) {
  const auto event = global_note(alice, "not yet there");
  store(deletion_of(alice, {{"e", hex_of(event)}}));
  EXPECT_EQ(refusal_of(event), "blocked: deleted by author");
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.events_outbox WHERE op = 'delete'"), "0");
  EXPECT_EQ(rig.sql("SELECT target_event_id, pubkey, applied_at IS NULL FROM cn_relay.deletion_tombstones"),
            Rows{fmt::format("{}|{}|t", hex_of(event), hex_of(alice))});
}

TEST_F(DeletionTest, RepeatedRequestCountsFromItsLastTime) {
  const auto event = global_note(alice, "not yet there");
  store(deletion_of(alice, {{"e", hex_of(event)}}));
  rig.sql("UPDATE cn_relay.deletion_tombstones SET requested_at = now() - interval '170 days'");
  const auto again = deletion_of(alice, {{"e", hex_of(event)}, {"k", "1"}});
  store(again);
  EXPECT_EQ(rig.sql("SELECT deletion_event_id, requested_at > now() - interval '1 day', applied_at IS NULL "
                    "FROM cn_relay.deletion_tombstones"),
            Rows{fmt::format("{}|t|t", hex_of(again))});
}

TEST_F(DeletionTest, OthersCanNotDelete) {
  const auto event = global_note(alice, "of alice");
  const auto later = global_note(alice, "of alice, later");
  const auto version = article("of alice", kTime);
  store(event);
  store(version);
  store(deletion_of(bob, {{"e", hex_of(event)}, {"e", hex_of(later)}, {"a", address_of(version, "x")}}));
  EXPECT_TRUE(is_served(event));
  EXPECT_TRUE(is_served(version));
  store(later);
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.events_outbox WHERE op = 'delete'"), "0");
}

// Gift wraps are signed by keys that nobody keeps (NIP-59).
TEST_F(DeletionTest, RecipientDeletesAGiftWrap) {
  EXPECT_TRUE(client.authenticate(bob).accepted);
  const auto wrap = global_note(alice, "sealed", {{"p", hex_of(bob)}}, nostr::kGiftWrap);
  store(wrap);
  EXPECT_TRUE(is_served(wrap));
  store(deletion_of(SecretKey::generate(), {{"e", hex_of(wrap)}}));
  EXPECT_TRUE(is_served(wrap));
  store(deletion_of(bob, {{"e", hex_of(wrap)}, {"k", "1059"}}));
  EXPECT_FALSE(is_served(wrap));
  EXPECT_EQ(refusal_of(wrap), "blocked: deleted by author");
  EXPECT_EQ(log_of(wrap), Rows({"upsert|kukuri:global|", "delete|kukuri:global|nip09"}));
  rig.stop();
  rig.start();
  EXPECT_EQ(NostrClient(rig.url()).publish(wrap).text, "blocked: deleted by author");
}

TEST_F(DeletionTest, RecipientDeletesAGiftWrapThatComesLater) {
  const auto wrap =
      global_note(alice, "sealed", {{"p", hex_of(alice)}, {"p", hex_of(bob)}}, nostr::kGiftWrap);
  const auto of_another = global_note(alice, "sealed", {{"p", hex_of(alice)}}, nostr::kGiftWrap);
  store(deletion_of(bob, {{"e", hex_of(wrap)}, {"e", hex_of(of_another)}}));
  EXPECT_EQ(refusal_of(wrap), "blocked: deleted by author");
  store(of_another);
}

TEST_F(DeletionTest, RecipientDeletesAGiftWrapWithNul) {
  EXPECT_TRUE(client.authenticate(bob).accepted);
  const std::string nul("a\0b", 3);
  const auto wrap = global_note(alice, nul, {{"x", nul}, {"p", hex_of(bob)}}, nostr::kGiftWrap);
  store(wrap);
  store(deletion_of(bob, {{"e", hex_of(wrap)}}));
  EXPECT_FALSE(is_served(wrap));
}

TEST_F(DeletionTest, RecipientDeletesNothingButGiftWraps) {
  for (const nostr::Kind kind : {nostr::Kind{1}, nostr::kDirectMessage}) {
    const auto event = global_note(alice, "", {{"p", hex_of(bob)}}, kind);
    store(event);
    store(deletion_of(bob, {{"e", hex_of(event)}}));
    EXPECT_EQ(refusal_of(event), "accepted: duplicate: already stored");
    EXPECT_EQ(log_of(event), Rows{"upsert|kukuri:global|"});
  }
}

TEST_F(DeletionTest, DeletionRequestsCanNotBeDeleted) {
  const auto request = deletion_of(alice, {{"e", std::string(64, 'a')}});
  // Also not by one that comes first.
  store(deletion_of(alice, {{"e", hex_of(request)}}));
  store(request);
  store(deletion_of(alice, {{"e", hex_of(request)}, {"k", "5"}}));
  EXPECT_TRUE(is_served(request));
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.events_outbox WHERE op = 'delete'"), "0");
}

TEST_F(DeletionTest, LogNamesEveryTopicOfTheTarget) {
  const auto other = topic('2');
  enable_topic(rig, other);
  const auto event = global_note(alice, "", {{"t", other}});
  store(event);
  // The request itself is in one topic only.
  const auto request = deletion_of(alice, {{"e", hex_of(event)}});
  store(request);
  EXPECT_EQ(log_of(event), Rows({fmt::format("upsert|{}|", other), "upsert|kukuri:global|",
                                 fmt::format("delete|{}|nip09", other), "delete|kukuri:global|nip09"}));
  EXPECT_EQ(log_of(request), Rows{"upsert|kukuri:global|"});
}

TEST_F(DeletionTest, DeletionIsSoft) {
  const auto event = global_note(alice, "kept for reports", {{"p", hex_of(bob)}});
  store(event);
  store(deletion_of(alice, {{"e", hex_of(event)}}));
  EXPECT_EQ(
      rig.sql(fmt::format("SELECT content, deleted_at IS NOT NULL FROM cn_relay.events WHERE event_id = '{}'",
                          hex_of(event))),
      Rows{"kept for reports|t"});
  EXPECT_EQ(rig.value(fmt::format("SELECT count(*) FROM cn_relay.effective_events WHERE event_id = '{}'",
                                  hex_of(event))),
            "0");
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.event_topics"), "1");
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.event_tags WHERE name = 'p'"), "0");
  EXPECT_EQ(rig.value("SELECT applied_at IS NOT NULL FROM cn_relay.deletion_tombstones"), "t");
}

TEST_F(DeletionTest, DeletingTwiceIsLoggedOnce) {
  const auto event = global_note(alice, "");
  store(event);
  store(deletion_of(alice, {{"e", hex_of(event)}}, kTime));
  store(deletion_of(alice, {{"e", hex_of(event)}, {"e", hex_of(event)}}, kTime + 1));
  EXPECT_EQ(log_of(event), Rows({"upsert|kukuri:global|", "delete|kukuri:global|nip09"}));
}

TEST_F(DeletionTest, AddressCoversVersionsUpToTheRequest) {
  const auto first = article("first", kTime);
  const auto at_request = article("of the same second", kTime + 10);
  const auto newer = article("newer", kTime + 11);
  store(first);
  store(deletion_of(alice, {{"a", address_of(first, "x")}, {"k", "30023"}}, kTime + 10));
  EXPECT_FALSE(is_served(first));
  EXPECT_EQ(refusal_of(first), "blocked: deleted by author");
  EXPECT_EQ(refusal_of(at_request), "blocked: deleted by author");
  store(newer);
  EXPECT_TRUE(is_served(newer));
  EXPECT_EQ(log_of(first), Rows({"upsert|kukuri:global|", "delete|kukuri:global|nip09"}));
  // A request older than the version does nothing to it.
  store(deletion_of(alice, {{"a", address_of(first, "x")}}, kTime + 5));
  EXPECT_TRUE(is_served(newer));
  EXPECT_EQ(refusal_of(at_request), "blocked: deleted by author");
}

TEST_F(DeletionTest, AddressOfAReplaceableEventIsTakenToo) {
  const auto relays = global_note(alice, "relays", {}, 10002, kTime);
  store(relays);
  store(deletion_of(alice, {{"a", address_of(relays)}}, kTime + 1));
  EXPECT_FALSE(is_served(relays));
  EXPECT_EQ(refusal_of(relays), "blocked: deleted by author");
}

TEST_F(DeletionTest, AddressMayComeBeforeItsVersions) {
  const auto older = article("older", kTime);
  const auto newer = article("newer", kTime + 2);
  store(deletion_of(alice, {{"a", address_of(older, "x")}}, kTime + 1));
  EXPECT_EQ(refusal_of(older), "blocked: deleted by author");
  store(newer);
}

TEST_F(DeletionTest, DeletedVersionDoesNotBringBackAnOlderOne) {
  const auto older = article("older", kTime);
  const auto newer = article("newer", kTime + 1);
  store(older);
  store(newer);
  store(deletion_of(alice, {{"e", hex_of(newer)}}));
  EXPECT_THAT(client.stored(global_and(R"("kinds":[30023])")).ids, IsEmpty());
  EXPECT_EQ(refusal_of(older), "duplicate: newer version stored");
  const auto newest = article("newest", kTime + 2);
  store(newest);
  EXPECT_TRUE(is_served(newest));
  EXPECT_EQ(log_of(newer), Rows({"upsert|kukuri:global|", "delete|kukuri:global|nip09"}));
}

TEST_F(DeletionTest, SupersededVersionCanBeDeletedWithoutAnotherLogRow) {
  const auto older = article("older", kTime);
  const auto newer = article("newer", kTime + 1);
  store(older);
  store(newer);
  store(deletion_of(alice, {{"e", hex_of(older)}}));
  EXPECT_TRUE(is_served(newer));
  EXPECT_EQ(log_of(older), Rows({"upsert|kukuri:global|", "delete|kukuri:global|replaced"}));
  EXPECT_EQ(refusal_of(older), "blocked: deleted by author");
}

TEST_F(DeletionTest, OneRequestMayNameManyTargets) {
  Tags targets;
  std::vector<Event> events;
  for (int i = 0; i < 40; ++i) {
    events.push_back(global_note(alice, std::to_string(i)));
    targets.push_back({"e", hex_of(events.back())});
  }
  const auto of_bob = global_note(bob, "of bob");
  targets.push_back({"e", hex_of(of_bob)});
  targets.push_back({"e", "no id"});
  targets.push_back({"a", "no address"});
  store(of_bob);
  for (const auto& event : events) store(event);
  const auto request = deletion_of(alice, targets);
  store(request);
  EXPECT_THAT(client.stored(kGlobal).ids, testing::UnorderedElementsAre(hex_of(of_bob), hex_of(request)));
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.events_outbox WHERE reason = 'nip09'"), "40");
}

TEST_F(DeletionTest, PipelinedEventAndDeletionEndDeleted) {
  for (int i = 0; i < 10; ++i) {
    const auto event = global_note(alice, std::to_string(i));
    client.send(fmt::format(R"(["EVENT",{}])", event.json()));
    client.send(fmt::format(R"(["EVENT",{}])", deletion_of(alice, {{"e", hex_of(event)}}).json()));
  }
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(parse_ok(client.receive()).accepted);
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.effective_events WHERE kind = 1"), "0");
  EXPECT_THAT(client.stored(global_and(R"("kinds":[1])")).ids, IsEmpty());
}

TEST_F(DeletionTest, EventWithNulIsDeletedAndReplacedLikeAnyOther) {
  const std::string nul("a\0b", 3);
  const auto event = global_note(alice, nul, {{"x", nul}});
  store(event);
  EXPECT_THAT(client.stored(by_id(event)).events, ElementsAre(std::string(event.json())));
  EXPECT_THAT(client.stored(global_and(R"("#x":["a\u0000b"])")).events,
              ElementsAre(std::string(event.json())));
  store(deletion_of(alice, {{"e", hex_of(event)}}));
  EXPECT_FALSE(is_served(event));
  EXPECT_THAT(client.stored(global_and(R"("#x":["a\u0000b"])")).ids, IsEmpty());
  EXPECT_EQ(refusal_of(event), "blocked: deleted by author");
  EXPECT_EQ(log_of(event), Rows({"upsert|kukuri:global|", "delete|kukuri:global|nip09"}));

  const auto older = global_note(alice, nul, {{"d", nul}, {"x", nul}}, 30023, kTime);
  const auto newer = global_note(alice, nul + nul, {{"d", nul}}, 30023, kTime + 1);
  store(older);
  store(newer);
  EXPECT_THAT(client.stored(global_and(R"("kinds":[30023])")).events, ElementsAre(std::string(newer.json())));
  store(deletion_of(alice, {{"a", address_of(newer, nul)}}, kTime + 2));
  EXPECT_FALSE(is_served(newer));
}

TEST_F(DeletionTest, ADeletionByIdIsTheReasonAlsoWhenANewerVersionWaitsBehindIt) {
  const auto older = article("older", kTime);
  store(older);
  SqlSession holder(rig.database()->url());
  holder.run("BEGIN");
  holder.run("SELECT pg_advisory_xact_lock(cn_names.lock_log())");
  // The first one is with the database when the other two come; they wait for the next batch.
  const auto first = global_note(bob, "first");
  const auto request = deletion_of(alice, {{"e", hex_of(older)}});
  const auto newer = article("newer", kTime + 1);
  client.send(fmt::format(R"(["EVENT",{}])", first.json()));
  EXPECT_EQ(
      rig.await_sql("SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database "
                    "WHERE d.datname = current_database() AND l.locktype = 'advisory' AND NOT l.granted",
                    {"1"}),
      Rows{"1"});
  client.send(fmt::format(R"(["EVENT",{}])", request.json()));
  client.send(fmt::format(R"(["EVENT",{}])", newer.json()));
  EXPECT_TRUE(rig.await_metric("todoke_ingest_received_total{source=\"ws\"}", 4));
  holder.run("COMMIT");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(parse_ok(client.receive(R"(["OK")")).accepted);
  EXPECT_EQ(log_of(older), Rows({"upsert|kukuri:global|", "delete|kukuri:global|nip09"}));
  EXPECT_EQ(log_of(newer), Rows{"upsert|kukuri:global|"});
  EXPECT_TRUE(is_served(newer));
}

}  // namespace
}  // namespace todoke::test

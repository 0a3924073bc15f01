// Versions: which one wins, what becomes of the others.
#include <algorithm>

#include <fmt/format.h>

#include "support.hpp"

namespace todoke::test {
namespace {

class ReplaceableTest : public TopicsTest {
 protected:
  Event profile(const std::string& content, std::int64_t time) {
    return global_note(alice, content, {}, 0, time);
  }
  Event article(const std::string& d, const std::string& content, std::int64_t time) {
    return global_note(alice, content, {{"d", d}}, 30023, time);
  }
  Ids ids_of_kind(nostr::Kind kind) {
    return client.stored(global_and(fmt::format(R"("kinds":[{}])", kind))).ids;
  }
  // Two versions of the same second: the one with the smaller id first.
  std::pair<Event, Event> tie(const std::function<Event(const std::string&)>& make) {
    auto a = make("a");
    auto b = make("b");
    if (hex_of(b) < hex_of(a)) std::swap(a, b);
    return {std::move(a), std::move(b)};
  }
};

TEST_F(ReplaceableTest, NewerVersionTakesThePlaceOfTheOlder) {
  for (const auto kind : std::initializer_list<nostr::Kind>{0, 3, 10'000, 10'002, 19'999}) {
    const auto older = global_note(alice, "older", {}, kind, kTime);
    const auto newer = global_note(alice, "newer", {}, kind, kTime + 1);
    const auto of_bob = global_note(bob, "of another author", {}, kind, kTime - 1);
    store(older);
    store(of_bob);
    store(newer);
    EXPECT_THAT(ids_of_kind(kind), ElementsAre(hex_of(newer), hex_of(of_bob))) << kind;
    EXPECT_THAT(client.stored(by_id(older)).ids, IsEmpty());
  }
}

TEST_F(ReplaceableTest, OlderVersionIsRefused) {
  store(profile("newer", kTime + 1));
  EXPECT_EQ(refusal_of(profile("older", kTime)), "duplicate: newer version stored");
  store(article("a", "newer", kTime + 1));
  EXPECT_EQ(refusal_of(article("a", "older", kTime)), "duplicate: newer version stored");
  store(article("b", "another article", kTime));
}

TEST_F(ReplaceableTest, ReplacedVersionIsRefusedWhenItIsSentAgain) {
  const auto older = profile("older", kTime);
  store(older);
  store(profile("newer", kTime + 1));
  EXPECT_EQ(refusal_of(older), "duplicate: newer version stored");
}

TEST_F(ReplaceableTest, OfTheSameSecondTheSmallerIdWins) {
  const auto [small, large] = tie([&](const auto& content) { return profile(content, kTime); });
  store(large);
  store(small);
  EXPECT_EQ(refusal_of(large), "duplicate: newer version stored");
  EXPECT_THAT(ids_of_kind(0), ElementsAre(hex_of(small)));

  const auto [low, high] = tie([&](const auto& content) { return article("d", content, kTime); });
  store(low);
  EXPECT_EQ(refusal_of(high), "duplicate: newer version stored");
  EXPECT_THAT(ids_of_kind(30023), ElementsAre(hex_of(low)));
}

TEST_F(ReplaceableTest, AddressesDifferByKindAuthorAndD) {
  const std::vector<Event> all = {article("a", "", kTime), article("b", "", kTime - 1),
                                  article("", "", kTime - 2),
                                  global_note(bob, "", {{"d", "a"}}, 30023, kTime - 3),
                                  global_note(alice, "", {{"d", "a"}}, 30024, kTime - 4)};
  for (const auto& event : all) store(event);
  EXPECT_EQ(client.stored(kGlobal).ids, hexes_of(all));
  const auto newer = article("a", "newer", kTime + 1);
  store(newer);
  auto ids = hexes_of(all);
  ids[0] = hex_of(newer);
  EXPECT_EQ(client.stored(kGlobal).ids, ids);
}

TEST_F(ReplaceableTest, FirstDCounts) {
  const auto both = global_note(alice, "", {{"d", "first"}, {"d", "second"}}, 30023, kTime);
  store(both);
  store(article("second", "", kTime + 1));
  EXPECT_EQ(ids_of_kind(30023).size(), 2U);
  store(article("first", "", kTime + 2));
  EXPECT_THAT(client.stored(by_id(both)).ids, IsEmpty());
}

TEST_F(ReplaceableTest, AddressableNeedsADUnderThePolicyTopics) {
  EXPECT_EQ(refusal_of(global_note(alice, "", {}, 30023)), "invalid: missing d");
  store(global_note(alice, "", {{"d"}}, 30023, kTime));
  store(global_note(alice, "the same address", {{"d", ""}}, 30023, kTime + 1));
  EXPECT_EQ(ids_of_kind(30023).size(), 1U);
}

TEST(OpenReplaceableTest, MissingDIsTheEmptyOne) {
  const RelayRig rig(kOpen);
  NostrClient client(rig.url());
  const auto key = SecretKey::generate();
  const auto without = note(key, "", {}, 30023, kTime);
  const auto empty = note(key, "", {{"d", ""}}, 30023, kTime + 1);
  store_at(client, without);
  store_at(client, empty);
  EXPECT_THAT(client.stored(R"({"kinds":[30023]})").ids, ElementsAre(hex_of(empty)));
  EXPECT_EQ(client.publish(without).text, "duplicate: newer version stored");
}

TEST_F(ReplaceableTest, LogTellsTheEndOfTheOldVersionBeforeTheNew) {
  const auto other = topic('1');
  enable_topic(rig, other);
  const auto older = global_note(alice, "older", {{"t", other}, {"d", "x"}}, 30023, kTime);
  const auto newer = global_note(alice, "newer", {{"d", "x"}}, 30023, kTime + 1);
  store(older);
  store(newer);
  const auto key = fmt::format("30023:{}:x", hex_of(alice));
  EXPECT_EQ(rig.sql("SELECT op, event_id, topic_id, kind, created_at, effective_key, reason FROM "
                    "cn_relay.events_outbox ORDER BY seq"),
            Rows({fmt::format("upsert|{}|{}|30023|{}|{}|", hex_of(older), other, kTime, key),
                  fmt::format("upsert|{}|kukuri:global|30023|{}|{}|", hex_of(older), kTime, key),
                  fmt::format("delete|{}|{}|30023|{}|{}|replaced", hex_of(older), other, kTime, key),
                  fmt::format("delete|{}|kukuri:global|30023|{}|{}|replaced", hex_of(older), kTime, key),
                  fmt::format("upsert|{}|kukuri:global|30023|{}|{}|", hex_of(newer), kTime + 1, key)}));
}

TEST_F(ReplaceableTest, SupersededVersionStaysReadableInTheTableOnly) {
  const auto older = global_note(alice, "older", {{"p", hex_of(bob)}}, 10002, kTime);
  const auto newer = global_note(alice, "newer", {}, 10002, kTime + 1);
  store(older);
  store(newer);
  EXPECT_EQ(rig.sql("SELECT content, superseded_at IS NOT NULL, deleted_at IS NULL FROM cn_relay.events "
                    "ORDER BY created_at"),
            Rows({"older|t|t", "newer|f|t"}));
  EXPECT_EQ(rig.sql("SELECT content FROM cn_relay.effective_events"), Rows{"newer"});
  EXPECT_EQ(rig.sql("SELECT event_id FROM cn_relay.event_topics"), Rows{hex_of(newer)});
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.event_tags"), "0");
  EXPECT_EQ(rig.sql("SELECT event_id, kind, event_json ->> 'content' FROM cn_relay.replaceable_current"),
            Rows{hex_of(newer) + "|10002|newer"});
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.addressable_current"), "0");
}

TEST_F(ReplaceableTest, ManyVersionsInOneBurstLeaveTheNewest) {
  std::vector<Event> versions;
  for (int i = 0; i < 30; ++i) versions.push_back(article("burst", std::to_string(i), kTime + (i * 7) % 30));
  for (const auto& version : versions) client.send(fmt::format(R"(["EVENT",{}])", version.json()));
  for (std::size_t i = 0; i < versions.size(); ++i) client.receive(R"(["OK",)");
  const auto newest = std::max_element(versions.begin(), versions.end(), [](const Event& a, const Event& b) {
    return a.created_at() < b.created_at();
  });
  EXPECT_THAT(ids_of_kind(30023), ElementsAre(hex_of(*newest)));
  EXPECT_EQ(rig.sql("SELECT event_id FROM cn_relay.effective_events"), Rows{hex_of(*newest)});
  // The log says the same: every upsert but the last has its delete.
  EXPECT_EQ(rig.sql("SELECT event_id FROM cn_relay.events_outbox GROUP BY event_id HAVING count(*) = 1"),
            Rows{hex_of(*newest)});
}

TEST_F(ReplaceableTest, LongAndStrangeDsAreAddressesToo) {
  for (const auto& d :
       {std::string(5'000, 'd'), std::string("nul\0inside", 10), std::string("a|b:c'\"\\\n")}) {
    const auto older = article(d, "older", kTime);
    const auto newer = article(d, "newer", kTime + 1);
    store(older);
    store(newer);
    EXPECT_EQ(refusal_of(older), "duplicate: newer version stored");
    EXPECT_THAT(client.stored(by_id(older)).ids, IsEmpty());
    EXPECT_THAT(client.stored(by_id(newer)).events, ElementsAre(std::string(newer.json())));
  }
}

}  // namespace
}  // namespace todoke::test

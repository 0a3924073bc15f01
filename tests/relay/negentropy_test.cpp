// Set reconciliation (NIP-77) on the wire: what a client finds out, what it may not see, and what it costs
// the node.
#include "nostr/negentropy.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "nostr/relay_message.hpp"
#include "support.hpp"

namespace todoke::test {
namespace {

using nostr::EventId;
using nostr::NegSet;
using nostr::RelayMessage;

std::string hex_of_bytes(std::string_view bytes) {
  return to_hex(as_bytes(bytes));
}

std::string bytes_of(const std::string& hex) {
  std::string bytes(hex.size() / 2, '\0');
  if (!from_hex(hex, {reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()}))
    throw std::runtime_error(hex);
  return bytes;
}

std::string neg_open(const std::string& sub, const std::string& filter, std::string_view message) {
  return fmt::format(R"(["NEG-OPEN","{}",{},"{}"])", sub, filter, hex_of_bytes(message));
}

std::string neg_msg(const std::string& sub, std::string_view message) {
  return fmt::format(R"(["NEG-MSG","{}","{}"])", sub, hex_of_bytes(message));
}

// What the client has nothing of.
std::string first_message() {
  static const NegSet nothing;
  return nostr::NegClient(nothing, {}).open();
}

RelayMessage next_neg(NostrClient& client) {
  return nostr::parse_relay_message(client.receive(R"(["NEG-)")).value();
}

// The text of the NEG-ERR that the question gets.
std::string neg_refusal(NostrClient& client, const std::string& message) {
  client.send(message);
  const auto answer = next_neg(client);
  return answer.verb == RelayMessage::Verb::neg_err ? answer.text : "answered";
}

struct Difference {
  Ids have;
  Ids need;
};

Ids sorted_hexes(const std::vector<EventId>& ids) {
  Ids hexes;
  for (const auto& id : ids) hexes.push_back(id.hex());
  std::sort(hexes.begin(), hexes.end());
  return hexes;
}

Ids sorted(Ids ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

// What the two lack of each other.
Difference reconcile(NostrClient& client, const std::string& filter, const std::vector<Event>& mine,
                     std::size_t message_bytes_max = 60'000) {
  std::vector<nostr::NegItem> items;
  for (const auto& event : mine) items.push_back({event.created_at(), event.id()});
  const NegSet set(std::move(items));
  nostr::NegClient neg(set, {.message_bytes_max = message_bytes_max, .need_max = 1'000'000});
  client.send(neg_open("n", filter, neg.open()));
  for (;;) {
    const auto answer = next_neg(client);
    if (answer.verb == RelayMessage::Verb::neg_err) throw std::runtime_error(answer.text);
    EXPECT_EQ(answer.subject, "n");
    const auto next = neg.take(bytes_of(answer.text));
    if (!next) throw std::runtime_error(std::string(text_of(next.error())));
    if (!*next) break;
    client.send(neg_msg("n", **next));
  }
  client.send(R"(["NEG-CLOSE","n"])");
  return {sorted_hexes(neg.have()), sorted_hexes(neg.need())};
}

class NegentropyTopicsTest : public TopicsTest {
 protected:
  std::vector<Event> store_notes(int count, std::int64_t first = kTime) {
    std::vector<Event> events;
    for (int i = 0; i < count; ++i) {
      events.push_back(global_note(alice, std::to_string(i), {}, 1, first + i / 3));
      store(events.back());
    }
    return events;
  }
};

TEST_F(NegentropyTopicsTest, ClientLearnsExactlyWhatEitherSideLacks) {
  auto events = store_notes(120);
  const auto only_mine = global_note(alice, "mine", {}, 1, kTime + 7);
  std::vector<Event> mine(events.begin() + 5, events.end());
  mine.push_back(only_mine);
  const auto difference = reconcile(client, kGlobal, mine);
  EXPECT_EQ(difference.have, Ids{hex_of(only_mine)});
  EXPECT_EQ(difference.need, sorted(hexes_of({events.begin(), events.begin() + 5})));
}

TEST_F(NegentropyTopicsTest, DefaultAndLargestLimitOfARequestDoNotHold) {
  rig.change({{"relay.limit_default", "10"}, {"relay.limit_max", "20"}});
  const auto events = store_notes(50);
  EXPECT_TRUE(await([&] { return client.stored(kGlobal).ids.size() == 10; }));
  EXPECT_EQ(reconcile(client, kGlobal, {}).need, sorted(hexes_of(events)));
}

TEST_F(NegentropyTopicsTest, ALimitInTheFilterMeansTheNewest) {
  const auto events = store_notes(40);
  const auto need = reconcile(client, global_and(R"("limit":4)"), {}).need;
  EXPECT_EQ(need, sorted(client.stored(global_and(R"("limit":4)")).ids));
  EXPECT_EQ(need.size(), 4U);
}

TEST_F(NegentropyTopicsTest, FiltersSelectAsTheyDoInARequest) {
  store_notes(10);
  enable_topic(rig, topic('7'));
  const auto both = note(bob, "both", {{"t", "kukuri:global"}, {"t", topic('7')}}, 7, kTime + 100);
  store(both);
  store(global_note(bob, "tagged", {{"e", std::string(64, 'e')}}, 1, kTime + 200));
  const auto two_topics = fmt::format(R"({{"#t":["kukuri:global","{}"]}})", topic('7'));
  for (const auto& filter : {std::string(kGlobal), two_topics, global_and(R"("kinds":[7])"),
                             global_and(R"("kinds":[1,7],"since":1700000002)"),
                             global_and(fmt::format(R"("authors":["{}"])", bob.pubkey().hex())),
                             global_and(fmt::format(R"("#e":["{}"])", std::string(64, 'e'))), by_id(both),
                             global_and(R"("until":1700000001)"), global_and(R"("kinds":[])")}) {
    EXPECT_EQ(reconcile(client, filter, {}).need, sorted(client.stored(filter).ids)) << filter;
  }
}

TEST_F(NegentropyTopicsTest, WhatLostItsEffectIsNotInTheSet) {
  const auto old_profile = global_note(alice, "old", {}, 0, kTime);
  const auto profile = global_note(alice, "new", {}, 0, kTime + 1);
  const auto doomed = global_note(alice, "doomed", {}, 1, kTime);
  const auto brief =
      global_note(alice, "brief", {{"expiration", std::to_string(unix_now() + 100)}}, 1, kTime);
  for (const auto* event : {&old_profile, &profile, &doomed, &brief}) store(*event);
  const auto deletion = deletion_of(alice, {{"e", hex_of(doomed)}});
  store(deletion);
  EXPECT_EQ(reconcile(client, kGlobal, {}).need, sorted(hexes_of({profile, deletion, brief})));
  rig.clock().shift(std::chrono::seconds(200));
  EXPECT_EQ(reconcile(client, kGlobal, {}).need, sorted(hexes_of({profile, deletion})));
}

TEST_F(NegentropyTopicsTest, PrivateAndScopedEventsAreInTheSetOfThoseWhoMaySeeThem) {
  const auto open_note = global_note(alice, "everybody");
  const auto wrap = global_note(alice, "sealed", {{"p", bob.pubkey().hex()}}, 1059, kTime + 5);
  const auto message = global_note(alice, "hi", {{"p", bob.pubkey().hex()}}, 4, kTime + 6);
  for (const auto* event : {&open_note, &wrap, &message}) store(*event);
  NostrClient writer(rig.url());
  ASSERT_TRUE(writer.authenticate(alice).accepted);
  const auto scoped = global_note(alice, "friends", {{"scope", "friend"}, {"epoch", "1"}}, 1, kTime + 7);
  store_at(writer, scoped);

  EXPECT_EQ(reconcile(client, kGlobal, {}).need, Ids{hex_of(open_note)});
  NostrClient stranger(rig.url());
  ASSERT_TRUE(stranger.authenticate(SecretKey::generate()).accepted);
  EXPECT_EQ(reconcile(stranger, kGlobal, {}).need, sorted(hexes_of({open_note, scoped})));
  NostrClient recipient(rig.url());
  ASSERT_TRUE(recipient.authenticate(bob).accepted);
  EXPECT_EQ(reconcile(recipient, kGlobal, {}).need, sorted(hexes_of({open_note, wrap, message, scoped})));
  EXPECT_EQ(reconcile(recipient, global_and(R"("limit":3)"), {}).need,
            sorted(recipient.stored(global_and(R"("limit":3)")).ids));
  EXPECT_EQ(neg_refusal(client, neg_open("n", global_and(R"("kinds":[4,1059])"), first_message())),
            "auth-required: authenticate first");
}

TEST_F(NegentropyTopicsTest, QuestionsThatARequestMayNotAskAreRefused) {
  const auto refused = [&](const std::string& filter) {
    return neg_refusal(client, neg_open("n", filter, first_message()));
  };
  EXPECT_EQ(refused("{}"), "invalid: #t required");
  EXPECT_EQ(refused(fmt::format(R"({{"#t":["{}"]}})", topic('9'))), "restricted: topic not enabled");
  EXPECT_EQ(refused(global_and(R"("seq_after":0)")), "unsupported: search or seq_after in NEG-OPEN");
  EXPECT_EQ(refused(global_and(R"("color":1)")), "unsupported: unknown filter key");
  EXPECT_EQ(neg_refusal(client, R"(["NEG-OPEN","n"])"), "invalid: missing message element");
  EXPECT_EQ(neg_refusal(client, R"(["NEG-OPEN","n",{"#t":["kukuri:global"]},"61zz"])"),
            "invalid: not a message of negentropy");
  EXPECT_EQ(neg_refusal(client, neg_open("n", kGlobal, "\x61\x05")), "invalid: not a message of negentropy");
  EXPECT_EQ(neg_refusal(client, neg_msg("n", first_message())),
            "closed: no such reconciliation is waiting for a message");
  EXPECT_TRUE(rig.await_metric("todoke_neg_sets", 0));
  EXPECT_TRUE(rig.await_metric("todoke_neg_set_bytes", 0));
}

TEST_F(NegentropyTopicsTest, SetThatIsTooLargeIsBlocked) {
  store_notes(12);
  rig.change({{"relay.negentropy_events_max", "10"}});
  EXPECT_TRUE(await([&] {
    return neg_refusal(client, neg_open("n", kGlobal, first_message())) ==
           "blocked: too many events, ask for less time at once";
  }));
  EXPECT_EQ(reconcile(client, global_and(R"("until":1700000002)"), {}).need.size(), 9U);
}

TEST_F(NegentropyTopicsTest, SetsOfAConnectionAreFewAndGoWithIt) {
  store_notes(3);
  {
    NostrClient other(rig.url());
    for (int i = 0; i < 4; ++i) {
      other.send(neg_open(std::to_string(i), kGlobal, first_message()));
      EXPECT_EQ(next_neg(other).verb, RelayMessage::Verb::neg_msg);
    }
    EXPECT_EQ(rig.metric("todoke_neg_sets"), 4);
    EXPECT_GT(rig.metric("todoke_neg_set_bytes"), 0);
    EXPECT_EQ(neg_refusal(other, neg_open("4", kGlobal, first_message())),
              "restricted: too many reconciliations");
    EXPECT_EQ(neg_refusal(other, neg_open("3", kGlobal, first_message())), "answered") << "in its own place";
    other.send(R"(["NEG-CLOSE","0"])");
    EXPECT_EQ(neg_refusal(other, neg_open("4", kGlobal, first_message())), "answered");
  }
  EXPECT_TRUE(rig.await_metric("todoke_neg_sets", 0));
  EXPECT_TRUE(rig.await_metric("todoke_neg_set_bytes", 0));
}

TEST_F(NegentropyTopicsTest, NamesOfSubscriptionsAndReconciliationsAreApart) {
  const auto events = store_notes(1);
  EXPECT_EQ(client.request("n", kGlobal).ids, hexes_of(events));
  EXPECT_EQ(neg_refusal(client, neg_open("n", kGlobal, first_message())), "answered");
  client.send(R"(["CLOSE","n"])");
  EXPECT_EQ(neg_refusal(client, neg_msg("n", first_message())), "answered");
  client.send(R"(["NEG-CLOSE","n"])");
  EXPECT_EQ(neg_refusal(client, neg_msg("n", first_message())),
            "closed: no such reconciliation is waiting for a message");
}

TEST_F(NegentropyTopicsTest, SilentClientLosesItsSet) {
  store_notes(1);
  ASSERT_EQ(neg_refusal(client, neg_open("n", kGlobal, first_message())), "answered");
  rig.clock().shift_steady(std::chrono::seconds(130));
  const auto ended = next_neg(client);
  EXPECT_EQ(ended.text, "closed: you took too long to respond");
  EXPECT_TRUE(rig.await_metric("todoke_neg_sets", 0));
}

TEST_F(NegentropyTopicsTest, TopicThatIsDisabledEndsWhatNamesIt) {
  enable_topic(rig, topic('5'));
  store(note(alice, "", {{"t", topic('5')}}));
  ASSERT_EQ(
      neg_refusal(client, neg_open("n", fmt::format(R"({{"#t":["{}"]}})", topic('5')), first_message())),
      "answered");
  rig.sql(fmt::format("UPDATE cn_relay.node_subscriptions SET enabled = false WHERE topic_id = '{}'",
                      topic('5')));
  EXPECT_EQ(next_neg(client).text, "restricted: topic not enabled");
}

TEST_F(NegentropyTopicsTest, LargeSetIsReadInPiecesAndAnsweredInRounds) {
  // Rows that no client has sent: 25,000 links of events are three pieces.
  rig.sql(
      "INSERT INTO cn_relay.topic_links (topic_no, event_id, short_id, short_author, kind, created_at, "
      "ingested_at, ingested_seq, lifetime) "
      "SELECT cn_relay.topic_no('kukuri:global'), id, cn_relay.short_id(encode(id, 'hex')), 0, 1, "
      "1600000000 + i / 100, now(), 0, 'k' "
      "FROM generate_series(1, 25000) AS i CROSS JOIN LATERAL sha256(i::text::bytea) AS id");
  const auto before = rig.metric("todoke_neg_messages_total");
  NostrClient large(rig.url(), large_messages());
  const auto need = reconcile(large, kGlobal, {}, nostr::kNegMessageBytesMin).need;
  EXPECT_EQ(need.size(), 25'000U);
  EXPECT_TRUE(std::adjacent_find(need.begin(), need.end()) == need.end());
  EXPECT_GE(rig.metric("todoke_neg_messages_total") - before, 4) << "250,000 bytes hold 7,800 ids";
}

TEST(NegentropyOpenTest, PlainRelayReconcilesWithoutATopic) {
  RelayRig rig(kOpen);
  NostrClient client(rig.url());
  const auto alice = SecretKey::generate();
  const auto bob = SecretKey::generate();
  const auto plain = note(alice, "plain", {}, 1, kTime);
  const auto tagged = note(bob, "tagged", {{"t", "flowers"}}, 7, kTime + 1);
  const auto wrap = note(bob, "wrap", {{"p", alice.pubkey().hex()}}, 1059, kTime + 2);
  for (const auto* event : {&plain, &tagged, &wrap}) store_at(client, *event);
  for (const std::string filter : {"{}", R"({"kinds":[1,7]})", R"({"#t":["flowers"]})",
                                   R"({"since":1700000001})", R"({"kinds":[7],"#t":["flowers"]})"}) {
    EXPECT_EQ(reconcile(client, filter, {}).need, sorted(client.stored(filter).ids)) << filter;
  }
  const auto by_author = fmt::format(R"({{"authors":["{}"],"kinds":[7,1059]}})", bob.pubkey().hex());
  EXPECT_EQ(reconcile(client, by_author, {}).need, Ids{hex_of(tagged)});
  ASSERT_TRUE(client.authenticate(alice).accepted);
  EXPECT_EQ(reconcile(client, by_author, {}).need, sorted(hexes_of({tagged, wrap})));
}

TEST(NegentropyRatesTest, ClientBeyondItsRateWaitsAndLosesNothing) {
  RelayRig rig(Flags{{"limits.rates", "on"}, {"limits.reqs_per_minute", "1"}});
  NostrClient client(rig.url());
  store_at(client, global_note(SecretKey::generate(), "one"));
  ASSERT_EQ(neg_refusal(client, neg_open("n", kGlobal, first_message())), "answered");
  client.send(neg_msg("n", first_message()));
  ASSERT_TRUE(await([&] { return rig.metric("todoke_ws_slowed_total") > 0; }));
  EXPECT_EQ(rig.metric("todoke_neg_messages_total"), 1) << "of the NEG-OPEN";
  rig.clock().shift_steady(std::chrono::seconds(61));
  EXPECT_EQ(next_neg(client).verb, RelayMessage::Verb::neg_msg);
  EXPECT_EQ(neg_refusal(client, neg_open("m", kGlobal, first_message())), "rate-limited: slow down");
}

}  // namespace
}  // namespace todoke::test

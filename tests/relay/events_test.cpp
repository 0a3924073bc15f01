// What an event must be to be taken: form, id, signature, time, sizes, kinds, scopes.
#include <fmt/format.h>

#include "support.hpp"

namespace todoke::test {
namespace {

class EventsTest : public TopicsTest {
 protected:
  // The JSON of a good event with the first `from` in it changed to `to`.
  std::string changed(const std::string& from, const std::string& to) {
    auto json = std::string(global_note(alice, "content", {}, 1, 1'700'000'000).json());
    const auto at = json.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return json.replace(at, from.size(), to);
  }
  std::string answer_to(const std::string& json) {
    client.send("[\"EVENT\"," + json + "]");
    return parse_ok(client.receive()).text;
  }
};

TEST_F(EventsTest, EveryFormErrorHasItsText) {
  const auto key = hex_of(alice);
  const auto upper = "\"A" + key.substr(1) + '"';
  EXPECT_EQ(answer_to(changed("\"id\":\"", "\"id\":\"0x")), "invalid: id must be 64 lower-case hex digits");
  EXPECT_EQ(answer_to(changed("\"id\":\"", "\"id\":1,\"was\":\"")),
            "invalid: id must be 64 lower-case hex digits");
  EXPECT_EQ(answer_to(changed('"' + key + '"', upper)), "invalid: pubkey must be 64 lower-case hex digits");
  EXPECT_EQ(answer_to(changed("\"sig\":\"", "\"sig\":\"00")),
            "invalid: sig must be 128 lower-case hex digits");
  for (const auto* time : {"1700000000.0", "1.7e9", "\"1700000000\"", "null", "9223372036854775808"}) {
    EXPECT_EQ(answer_to(changed("1700000000", time)), "invalid: created_at must be an integer") << time;
  }
  for (const auto* kind : {"-1", "65536", "70000", "1.0", "\"1\"", "1e3"}) {
    EXPECT_EQ(answer_to(changed("\"kind\":1,", fmt::format("\"kind\":{},", kind))),
              "invalid: kind must be an integer from 0 to 65535")
        << kind;
  }
  for (const auto* tags : {"\"tags\":null,\"was\":[", "\"tags\":[\"t\"],\"was\":[",
                           "\"tags\":[[1]],\"was\":[", "\"tags\":[[\"t\",null]],\"was\":["}) {
    EXPECT_EQ(answer_to(changed("\"tags\":[", tags)), "invalid: tags must be an array of arrays of strings")
        << tags;
  }
  EXPECT_EQ(answer_to(changed("\"content\":\"content\"", "\"content\":7")),
            "invalid: content must be a string");
  EXPECT_EQ(answer_to(changed("\"content\":\"content\"", R"("content":"\ud800")")),
            "invalid: lone surrogate");
  EXPECT_EQ(answer_to(changed("\"kukuri:global\"", R"("\udc00")")), "invalid: lone surrogate");
  EXPECT_EQ(answer_to(changed("\"content\":", "\"kontent\":")), "invalid: missing event member");
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.events"), "0");
}

TEST_F(EventsTest, MemberThatStandsTwiceIsRefused) {
  for (const auto* member : {"\"kind\":1", "\"content\":\"content\"", "\"created_at\":1700000000"}) {
    EXPECT_EQ(answer_to(changed(member, fmt::format("{0},{0}", member))), "invalid: duplicate event member");
  }
  EXPECT_EQ(answer_to(changed("\"kind\":1", R"("kind":1,"k\u0069nd":1)")), "invalid: duplicate event member");
}

TEST_F(EventsTest, WrongIdIsRefused) {
  EXPECT_EQ(answer_to(changed("\"content\":\"content\"", "\"content\":\"kontent\"")), "invalid: bad id");
  EXPECT_EQ(answer_to(changed("1700000000", "1700000001")), "invalid: bad id");
}

TEST_F(EventsTest, WrongSignatureIsRefused) {
  const auto one = global_note(alice, "one");
  const auto two = global_note(alice, "two");
  auto json = std::string(one.json());
  json.replace(json.find(one.sig().hex()), 128, two.sig().hex());
  EXPECT_EQ(refusal_of_json(json), "invalid: bad signature");
  // The relay remembers nothing of it.
  store(one);
}

TEST_F(EventsTest, EventIsServedInCanonicalFormHoweverItWasWritten) {
  const auto event =
      global_note(alice, "a/b \"quoted\" \\ \n\t\r\b\f \x01 \x7f \u2028 \uffff 😀 é", {{"x", "/"}});
  auto json = std::string(event.json());
  json.replace(json.find("a/b"), 3, R"(\u0061\/b)");
  json.replace(json.find("\"kind\":"), 7, "\"kind\" : \n ");
  json.replace(json.find('{'), 1, R"({"seen_on":["wss://elsewhere"],)");
  const auto ok = client.publish_json(json);
  EXPECT_TRUE(ok.accepted) << ok.text;
  EXPECT_THAT(client.stored(by_id(event)).events, ElementsAre(std::string(event.json())));
  NostrClient late(rig.url());
  EXPECT_THAT(late.stored(by_id(event)).events, ElementsAre(std::string(event.json())));
}

TEST_F(EventsTest, MalformedReferencesDoNotMakeAnEventInvalid) {
  const auto event = global_note(alice, "", {{"e", "no id"}, {"p", ""}, {"e"}, {}, {""}, {"a", "1:2:3"}});
  store(event);
  EXPECT_THAT(client.stored(by_id(event)).events, ElementsAre(std::string(event.json())));
}

TEST_F(EventsTest, EventsOfAnyAgeAreTakenButNotOfTheFuture) {
  const auto now = unix_now();
  for (const std::int64_t time : {now - 86'400 * 365, std::int64_t{1}, std::int64_t{0}, std::int64_t{-1},
                                  std::numeric_limits<std::int64_t>::min()}) {
    const auto event = global_note(alice, "old", {}, 1, time);
    store(event);
    EXPECT_THAT(client.stored(by_id(event)).events, ElementsAre(std::string(event.json())));
  }
  store(global_note(alice, "soon", {}, 1, now + 14 * 60));
  EXPECT_EQ(refusal_of(global_note(alice, "too late", {}, 1, now + 16 * 60)),
            "invalid: created_at out of range");
  EXPECT_EQ(refusal_of(global_note(alice, "never", {}, 1, std::numeric_limits<std::int64_t>::max())),
            "invalid: created_at out of range");
}

TEST_F(EventsTest, AgeCanBeBounded) {
  const RelayRig young(Flags{{"relay.created_at_past_max", "1h"}});
  NostrClient there(young.url());
  store_at(there, global_note(alice, "half an hour", {}, 1, unix_now() - 1'800));
  EXPECT_EQ(there.publish(global_note(alice, "two hours", {}, 1, unix_now() - 7'200)).text,
            "invalid: created_at out of range");
}

TEST_F(EventsTest, EventOfExactlyTheLargestSizeIsTaken) {
  const auto empty = global_note(alice, "", {}, 1, 1'700'000'000);
  const auto room = 64 * 1024 - empty.json().size();
  const auto full = global_note(alice, std::string(room, 'x'), {}, 1, 1'700'000'000);
  ASSERT_EQ(full.json().size(), 64U * 1024);
  store(full);
  EXPECT_THAT(client.stored(by_id(full)).events, ElementsAre(std::string(full.json())));
  const auto over = global_note(alice, std::string(room + 1, 'x'), {}, 1, 1'700'000'000);
  EXPECT_EQ(refusal_of(over), "invalid: event too large");
}

TEST_F(EventsTest, TagsAreCounted) {
  const auto with_tags = [&](std::size_t count) {
    return global_note(alice, "", Tags(count - 1, {"x", "y"}));
  };
  store(with_tags(2'000));
  EXPECT_EQ(refusal_of(with_tags(2'001)), "invalid: too many tags");
  store(global_note(alice, "", {std::vector<std::string>(100, "v")}));
  EXPECT_EQ(refusal_of(global_note(alice, "", {std::vector<std::string>(101, "v")})),
            "invalid: too many values in a tag");
}

TEST_F(EventsTest, KindsBetweenPeersAreRefused) {
  for (const auto kind : std::initializer_list<nostr::Kind>{39020, 39021, 39022}) {
    EXPECT_EQ(refusal_of(global_note(alice, "", {{"d", "x"}, {"k", "kukuri"}, {"ver", "1"}}, kind)),
              "restricted: p2p only");
  }
}

TEST_F(EventsTest, KindsOutsideAllRangesAreRegular) {
  for (const auto kind :
       std::initializer_list<nostr::Kind>{2, 41, 44, 1'000, 9'999, 40'000, 45'000, 65'535}) {
    const auto older = global_note(alice, "older", {}, kind, 1'700'000'000);
    const auto newer = global_note(alice, "newer", {}, kind, 1'700'000'001);
    store(older);
    store(newer);
    EXPECT_THAT(client.stored(global_and(fmt::format(R"("kinds":[{}])", kind))).ids,
                ElementsAre(hex_of(newer), hex_of(older)));
  }
}

TEST_F(EventsTest, ScopeAndEpochHaveAForm) {
  const auto refusal = [&](Tags tags) { return refusal_of(global_note(alice, "x", std::move(tags))); };
  EXPECT_EQ(refusal({{"scope", "friend"}}), "invalid: missing epoch");
  EXPECT_EQ(refusal({{"scope", "friend"}, {"epoch", "0"}}), "invalid: epoch must be positive");
  EXPECT_EQ(refusal({{"scope", "invite"}, {"epoch", "-3"}}), "invalid: epoch must be positive");
  EXPECT_EQ(refusal({{"scope", "friend_plus"}, {"epoch", "one"}}), "invalid: epoch must be an integer");
  EXPECT_EQ(refusal({{"scope", "friend"}, {"epoch", "1.5"}}), "invalid: epoch must be an integer");
  EXPECT_EQ(refusal({{"scope", "friend"}, {"epoch", "1"}, {"epoch", "2"}}), "invalid: more than one epoch");
  EXPECT_EQ(refusal({{"scope", "everybody"}}), "invalid: unknown scope");
  EXPECT_EQ(refusal({{"scope", "public"}, {"scope", "friend"}, {"epoch", "1"}}),
            "invalid: more than one scope");
  EXPECT_EQ(refusal({{"epoch", "1"}}), "invalid: missing scope");
  store(global_note(alice, "public needs no epoch", {{"scope", "public"}}));
}

TEST_F(EventsTest, KindsOfTheNetworkMustHaveTheirTags) {
  const auto refusal = [&](nostr::Kind kind, Tags tags, const std::string& content = "") {
    return refusal_of(global_note(alice, content, std::move(tags), kind));
  };
  const auto exp = std::to_string(unix_now() + 3'600);
  EXPECT_EQ(refusal(39000, {{"d", "descriptor"}}), "invalid: k must be kukuri");
  EXPECT_EQ(refusal(39000, {{"d", "descriptor"}, {"k", "kukuri"}}), "invalid: ver must be 1");
  const Tags mark = {{"k", "kukuri"}, {"ver", "1"}};
  const auto marked = [&](Tags tags) {
    tags.insert(tags.end(), mark.begin(), mark.end());
    return tags;
  };
  EXPECT_EQ(refusal(39000, marked({{"d", "other"}})), "invalid: d must be descriptor");
  EXPECT_EQ(refusal(39000, marked({{"d", "descriptor"}})), "invalid: missing exp");
  EXPECT_EQ(refusal(39000, marked({{"d", "descriptor"}, {"exp", exp}}), "text"),
            "invalid: content must be a JSON object");
  EXPECT_EQ(refusal(39000, marked({{"d", "descriptor"}, {"exp", exp}}), "{}"),
            "invalid: wrong content schema");
  EXPECT_EQ(refusal(39001, marked({{"d", "x"}})), "invalid: missing role");
  EXPECT_EQ(refusal(39005, marked({{"d", "x"}})), "invalid: missing target");
  EXPECT_EQ(refusal(39005, marked({{"d", "x"}, {"target", "me"}})),
            "invalid: target must be event:<id> or pubkey:<hex>");
  const auto target = "pubkey:" + hex_of(bob);
  EXPECT_EQ(refusal(39005, marked({{"d", "x"}, {"target", target}})), "invalid: missing reason");
  EXPECT_EQ(refusal(39005, marked({{"d", "x"}, {"target", target}, {"reason", "ugly"}})),
            "invalid: unknown reason");
  EXPECT_EQ(refusal(39006, marked({{"d", "x"}, {"target", target}})), "invalid: missing label");
  EXPECT_EQ(refusal(39006, marked({{"d", "x"}, {"target", target}, {"label", "ugly"}})),
            "invalid: unknown label");
  EXPECT_EQ(refusal(30382, {{"d", hex_of(bob)}}), "invalid: missing claim");
  EXPECT_EQ(refusal(30382, {{"d", hex_of(bob)}, {"claim", "c"}, {"rank", "101"}}),
            "invalid: rank must be an integer from 0 to 100");
  EXPECT_EQ(refusal(10040, {}), "invalid: missing <kind>:rank");
  store(global_note(alice, "", marked({{"d", "x"}, {"target", target}, {"reason", "spam"}}), 39005));
}

TEST_F(EventsTest, ProofOfWorkCanBeAskedFor) {
  const RelayRig strict(Flags{{"relay.difficulty_min", "4"}});
  NostrClient there(strict.url());
  std::optional<Event> worked;
  std::optional<Event> lazy;
  for (int nonce = 0; !worked || !lazy; ++nonce) {
    auto event = global_note(alice, "mined", {{"nonce", std::to_string(nonce), "4"}});
    (hex_of(event).front() == '0' ? worked : lazy) = std::move(event);
  }
  EXPECT_EQ(there.publish(*lazy).text, "pow: difficulty too low");
  store_at(there, *worked);
  // Luck is no work.
  std::optional<Event> lucky;
  for (int nonce = 0; !lucky; ++nonce) {
    auto event = global_note(alice, "lucky", {{"nonce", std::to_string(nonce), "1"}});
    if (hex_of(event).front() == '0') lucky = std::move(event);
  }
  EXPECT_EQ(there.publish(*lucky).text, "pow: difficulty too low");
}

TEST_F(EventsTest, DuplicateIsTakenAsSuch) {
  const auto event = global_note(alice, "once");
  store(event);
  for (int i = 0; i < 3; ++i) {
    const auto ok = client.publish(event);
    EXPECT_TRUE(ok.accepted);
    EXPECT_EQ(ok.text, "duplicate: already stored");
  }
  EXPECT_EQ(log_of(event), Rows{"upsert|kukuri:global|"});
  EXPECT_EQ(rig.metric("todoke_dedupe_hits_total"), 3);
}

TEST_F(EventsTest, WhatCameAndWhatWasRefusedIsCounted) {
  store(global_note(alice, "good"));
  EXPECT_EQ(refusal_of(note(alice, "no topic", {})), "invalid: missing topic");
  EXPECT_EQ(answer_to(R"({"id":"x"})"), "invalid: id must be 64 lower-case hex digits");
  EXPECT_EQ(rig.metric(R"(todoke_ingest_received_total{source="ws"})"), 3);
  EXPECT_EQ(rig.metric(R"(todoke_ingest_rejected_total{reason="missing_topic"})"), 1);
  EXPECT_EQ(rig.metric(R"(todoke_ingest_rejected_total{reason="malformed_id"})"), 1);
  EXPECT_EQ(rig.metric("todoke_ingest_commit_seconds_count"), 1);
  EXPECT_EQ(rig.metric("todoke_ingest_batch_events_count"), 1);
  EXPECT_EQ(rig.metric("todoke_log_lock_wait_seconds_count"), 1);
  EXPECT_TRUE(rig.await_metric("todoke_live_lag_seconds_count", 1));
  client.stored(kGlobal);
  client.count("c", kGlobal);
  EXPECT_EQ(rig.metric("todoke_query_seconds_count"), 2);
}

TEST_F(EventsTest, EventThatTheDatabaseRefusesFailsAlone) {
  rig.sql("ALTER TABLE cn_relay.events_kept ADD CONSTRAINT broken CHECK (kind <> 10003)");
  const auto refused = global_note(alice, "refused", {}, 10003);
  std::vector<Event> good;
  for (int i = 0; i < 5; ++i) good.push_back(global_note(alice, std::to_string(i)));
  // Pipelined, so that they share a batch.
  for (int i = 0; i < 5; ++i) {
    if (i == 2) client.send(fmt::format(R"(["EVENT",{}])", refused.json()));
    client.send(fmt::format(R"(["EVENT",{}])", good[static_cast<std::size_t>(i)].json()));
  }
  std::size_t stored = 0;
  for (int i = 0; i < 6; ++i) {
    const auto ok = parse_ok(client.receive());
    if (ok.id == hex_of(refused)) {
      EXPECT_FALSE(ok.accepted);
      EXPECT_EQ(ok.text, "error: not stored, try again");
    } else {
      EXPECT_TRUE(ok.accepted) << ok.text;
      ++stored;
    }
  }
  EXPECT_EQ(stored, 5U);
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.events"), "5");
}

}  // namespace
}  // namespace todoke::test

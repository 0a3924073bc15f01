// NIP-62: who asks to vanish is forgotten, for good.
#include <fmt/format.h>

#include "support.hpp"

namespace todoke::test {
namespace {

const Flags kNamed = {{"relay.public_url", "wss://relay.example.org"}};

class VanishTest : public testing::Test {
 protected:
  Event request_of(const SecretKey& key, std::optional<std::int64_t> created_at = {}, Tags tags = {}) {
    tags.push_back({"relay", "ALL_RELAYS"});
    return note(key, "forget me", std::move(tags), nostr::kVanish, created_at);
  }
  void vanish(const SecretKey& key, std::optional<std::int64_t> created_at = {}) {
    end_rest();
    store_at(client, request_of(key, created_at));
    await_done();
  }
  void end_rest() const { rig.sql("UPDATE cn_relay.erase_pass SET rest_until = now()"); }
  // As if a pass was under way that looks for alice's events up to then and has read everything.
  void pass_over_alice(std::int64_t until) const {
    rig.sql(fmt::format(
        "INSERT INTO cn_relay.vanish_requests (pubkey, request_id, until, pass) VALUES ('{}', '', {}, 1)",
        hex_of(alice), until));
    rig.sql("UPDATE cn_relay.erase_pass SET number = 1, under_way = true, next_block = 1, events_end = 1");
  }
  // Until the eraser stands before the log's lock, which the test holds.
  void await_eraser_at_the_log() const {
    EXPECT_EQ(rig.await_sql("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
                            "application_name = 'todoke eraser' AND wait_event = 'advisory'",
                            {"1"}),
              Rows{"1"});
  }
  void await_done() const {
    EXPECT_EQ(rig.await_sql("SELECT count(*) FROM cn_relay.vanish_requests WHERE done_at IS NULL", {"0"}),
              Rows{"0"});
  }
  std::string refusal_of(const Event& event) { return client.publish(event).text; }
  [[nodiscard]] Rows log_of(const Event& event) const {
    return rig.sql(
        fmt::format("SELECT op, topic_id, reason FROM cn_relay.events_outbox WHERE event_id = '{}' "
                    "ORDER BY seq",
                    hex_of(event)));
  }
  // The tables that hold anything of these events or of this person.
  [[nodiscard]] Rows traces_of(const SecretKey& key, const std::vector<Event>& events) const {
    std::string ids;
    for (const auto& event : events) ids += (ids.empty() ? "'" : ",'") + hex_of(event) + "'";
    return rig.sql(
        fmt::format("SELECT 'events' FROM cn_relay.events WHERE event_id IN ({0}) UNION "
                    "SELECT 'links' FROM cn_relay.event_topics WHERE event_id IN ({0}) UNION "
                    "SELECT 'tags' FROM cn_relay.event_tags WHERE event_id IN ({0}) UNION "
                    "SELECT 'dead letters' FROM cn_relay.consumer_dead_letters WHERE event_id IN ({0}) UNION "
                    "SELECT 'versions' FROM cn_relay.current_versions WHERE pubkey = '{1}' ORDER BY 1",
                    ids, hex_of(key)));
  }

  RelayRig rig{kNamed};
  NostrClient client{rig.url()};
  SecretKey alice = SecretKey::generate();
  SecretKey bob = SecretKey::generate();
};

TEST_F(VanishTest, EverythingUpToTheRequestIsErasedWhateverItsState) {
  const std::string nul("a\0b", 3);
  const auto plain = global_note(alice, "plain", {{"p", hex_of(bob)}});
  const auto deleted = global_note(alice, "deleted");
  const auto deletion = deletion_of(alice, {{"e", hex_of(deleted)}});
  const auto older = global_note(alice, "older", {{"d", "x"}}, 30023, kTime);
  const auto newer = global_note(alice, "newer", {{"d", "x"}}, 30023, kTime + 1);
  const auto gone = global_note(alice, "gone", {{"d", "y"}}, 30023, kTime);
  const auto gone_by = deletion_of(alice, {{"a", fmt::format("30023:{}:y", hex_of(alice))}});
  const auto with_nul = global_note(alice, nul, {{"x", nul}});
  const auto deleted_nul = global_note(alice, nul, {{"x", nul}, {"y", "1"}});
  const auto nul_deletion = deletion_of(alice, {{"e", hex_of(deleted_nul)}});
  const auto profile = global_note(alice, "{}", {}, 0);
  const std::vector<Event> all = {plain,   deleted,  deletion,    older,        newer,  gone,
                                  gone_by, with_nul, deleted_nul, nul_deletion, profile};
  const auto of_bob = global_note(bob, "about alice", {{"p", hex_of(alice)}});
  for (const auto& event : all) store_at(client, event);
  store_at(client, of_bob);
  rig.sql(fmt::format(
      "INSERT INTO cn_relay.consumer_dead_letters (consumer, seq, op, event_id, topic_id, error, tries) "
      "VALUES ('feed', 1, 'upsert', '{}', 'kukuri:global', 'plain', 3)",
      hex_of(plain)));
  const auto request = request_of(alice);
  store_at(client, request);
  await_done();
  EXPECT_THAT(traces_of(alice, all), IsEmpty());
  EXPECT_THAT(client.stored(kGlobal).ids, ElementsAre(hex_of(of_bob)));
  EXPECT_EQ(client.count("c", kGlobal), R"(["COUNT","c",{"count":1}])");
  // Each gets a row that says so, also after one that had ended its effect before.
  EXPECT_EQ(log_of(plain), Rows({"upsert|kukuri:global|", "delete|kukuri:global|dsar"}));
  EXPECT_EQ(log_of(newer), Rows({"upsert|kukuri:global|", "delete|kukuri:global|dsar"}));
  EXPECT_EQ(log_of(older),
            Rows({"upsert|kukuri:global|", "delete|kukuri:global|replaced", "delete|kukuri:global|dsar"}));
  EXPECT_EQ(log_of(deleted),
            Rows({"upsert|kukuri:global|", "delete|kukuri:global|nip09", "delete|kukuri:global|dsar"}));
  // As `todoke audit` asks: no event of the log is missing without a word.
  EXPECT_EQ(
      rig.value("SELECT count(*) FROM cn_relay.events_outbox o WHERE o.op = 'upsert' AND NOT EXISTS (SELECT "
                "FROM cn_relay.events e WHERE e.event_id = o.event_id) AND NOT EXISTS (SELECT FROM "
                "cn_relay.events_outbox d WHERE d.event_id = o.event_id AND d.reason = 'dsar')"),
      "0");
  EXPECT_EQ(rig.sql("SELECT event_id FROM cn_relay.events WHERE pubkey = '" + hex_of(alice) + "'"),
            Rows{hex_of(request)});
  EXPECT_TRUE(await([&] { return rig.metric("todoke_vanish_requests_waiting") == 0; }));
  EXPECT_EQ(rig.metric("todoke_vanish_erased_total"), static_cast<double>(all.size()));
}

TEST_F(VanishTest, NothingFromBeforeTheRequestIsTakenAgainAndWhatIsNewerIs) {
  const auto time = unix_now();
  const auto before = global_note(alice, "before", {}, 1, time - 10);
  const auto at_request = global_note(alice, "at the request", {}, 1, time);
  const auto after = global_note(alice, "after", {}, 1, time + 1);
  const auto profile = global_note(alice, "{}", {}, 0, time - 5);
  store_at(client, before);
  vanish(alice, time);
  for (int round = 0; round < 2; ++round) {
    NostrClient other(rig.url());
    for (const auto& event :
         {before, at_request, profile, deletion_of(alice, {{"e", hex_of(after)}}, time)}) {
      EXPECT_EQ(other.publish(event).text, "blocked: vanished by request");
    }
    rig.stop();
    rig.start();
  }
  NostrClient later(rig.url());
  store_at(later, after);
  store_at(later, global_note(alice, "{}", {}, 0, time + 1));
  EXPECT_THAT(later.stored(by_id(after)).ids, ElementsAre(hex_of(after)));
}

TEST_F(VanishTest, GiftWrapsForThePersonGoTooInEffectOrNot) {
  const auto time = unix_now();
  const auto wrap = [&](const SecretKey& to, const std::string& content, std::int64_t at) {
    return global_note(SecretKey::generate(), content, {{"p", hex_of(to)}}, nostr::kGiftWrap, at);
  };
  const auto sealed = wrap(alice, "sealed", time);
  const auto nul = wrap(alice, std::string("\0", 1), time);
  const auto deleted = wrap(alice, "deleted", time);
  const auto of_bob = wrap(bob, "of bob", time);
  const auto mention = global_note(bob, "", {{"p", hex_of(alice)}});
  for (const auto& event : {sealed, nul, deleted, of_bob, mention}) store_at(client, event);
  store_at(client, deletion_of(alice, {{"e", hex_of(deleted)}}));
  vanish(alice, time + 5);
  EXPECT_THAT(traces_of(alice, {sealed, nul, deleted}), IsEmpty());
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.events WHERE kind IN (1, 1059)"), "2");
  EXPECT_EQ(refusal_of(sealed), "blocked: vanished by request");
  EXPECT_EQ(refusal_of(wrap(alice, "late", time)), "blocked: vanished by request");
  store_at(client, wrap(alice, "new", time + 6));
}

TEST_F(VanishTest, TheRequestNeedsNoTopicIsKeptAndCanNotBeDeleted) {
  const auto request = request_of(alice);
  store_at(client, request);
  await_done();
  EXPECT_EQ(log_of(request), Rows{"upsert|kukuri:global|"});
  EXPECT_EQ(refusal_of(request), "duplicate: already stored");
  store_at(client, deletion_of(alice, {{"e", hex_of(request)}}, unix_now() + 60));
  EXPECT_EQ(rig.value(fmt::format("SELECT count(*) FROM cn_relay.effective_events WHERE event_id = '{}'",
                                  hex_of(request))),
            "1");
  EXPECT_EQ(refusal_of(global_note(alice, "old", {}, 1, unix_now() - 100)), "blocked: vanished by request");
  // No topic holds it, so no question for one finds or counts it.
  EXPECT_THAT(client.stored(by_id(request)).ids, IsEmpty());
  EXPECT_EQ(client.count("c", global_and(R"("kinds":[62])")), R"(["COUNT","c",{"count":0}])");
}

TEST_F(VanishTest, RequestsToOtherRelaysAreRefused) {
  const auto ask = [&](Tags tags) { return refusal_of(note(alice, "", std::move(tags), nostr::kVanish)); };
  const auto refused = "restricted: request to vanish from other relays";
  EXPECT_EQ(ask({}), refused);
  EXPECT_EQ(ask({{"relay", "wss://other.example.org"}}), refused);
  EXPECT_EQ(ask({{"relay", rig.url()}}), refused);
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.vanish_requests"), "0");
  EXPECT_EQ(ask({{"relay", "wss://other.example.org"}, {"relay", "wss://relay.example.org/"}}), "");
  EXPECT_EQ(rig.value("SELECT pubkey FROM cn_relay.vanish_requests"), hex_of(alice));
}

TEST_F(VanishTest, ALaterRequestReachesFurtherAndAnEarlierOneChangesNothing) {
  const auto time = unix_now();
  vanish(alice, time - 100);
  const auto between = global_note(alice, "between", {}, 1, time - 50);
  store_at(client, between);
  vanish(alice, time - 10);
  EXPECT_THAT(traces_of(alice, {between}), IsEmpty());
  vanish(alice, time - 60);
  EXPECT_EQ(rig.value("SELECT until FROM cn_relay.vanish_requests"), std::to_string(time - 10));
  EXPECT_EQ(refusal_of(between), "blocked: vanished by request");
}

TEST_F(VanishTest, PipelinedEventsBeforeAndAfterTheRequestEndErasedOrRefused) {
  const auto time = unix_now();
  for (int i = 0; i < 10; ++i) {
    const auto before = global_note(alice, fmt::format("before {}", i), {}, 1, time - 20 + i);
    const auto after = global_note(alice, fmt::format("after {}", i), {}, 1, time - 20 + i);
    client.send(fmt::format(R"(["EVENT",{}])", before.json()));
    client.send(fmt::format(R"(["EVENT",{}])", request_of(alice, time - 20 + i).json()));
    client.send(fmt::format(R"(["EVENT",{}])", after.json()));
    EXPECT_TRUE(parse_ok(client.receive(R"(["OK")")).accepted);
    EXPECT_TRUE(parse_ok(client.receive(R"(["OK")")).accepted);
    EXPECT_EQ(parse_ok(client.receive(R"(["OK")")).text, "blocked: vanished by request");
  }
  await_done();
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.events WHERE kind <> 62"), "0");
}

TEST_F(VanishTest, KilledAgainAndAgainItEndsWithEachEventErasedOnce) {
  constexpr int kEvents = 900;
  for (int i = 0; i < kEvents; ++i) {
    client.send(fmt::format(R"(["EVENT",{}])", global_note(alice, std::to_string(i)).json()));
  }
  for (int i = 0; i < kEvents; ++i) EXPECT_TRUE(parse_ok(client.receive(R"(["OK")")).accepted);
  store_at(client, global_note(bob, "stays"));
  // The relay that erases waits for the log's lock, and is killed there.
  SqlSession holder(rig.database()->url());
  const auto hold = [&] {
    holder.run("BEGIN");
    holder.run("SELECT pg_advisory_xact_lock(cn_names.lock_log())");
  };
  store_at(client, request_of(alice));
  for (int kill = 0; kill < 4; ++kill) {
    hold();
    const auto is_waiting =
        "FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'todoke eraser' "
        "AND wait_event = 'advisory'";
    const auto waits =
        rig.await_sql(fmt::format("SELECT count(*) > 0 OR (SELECT count(*) = 1 FROM cn_relay.events "
                                  "WHERE kind = 1) {}",
                                  is_waiting),
                      {"t"});
    EXPECT_EQ(waits, Rows{"t"});
    rig.sql(fmt::format("SELECT count(pg_terminate_backend(pid)) {}", is_waiting));
    holder.run("COMMIT");
    if (kill == 1) {
      rig.stop();
      rig.start();
    }
  }
  await_done();
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.events WHERE kind = 1"), "1");
  EXPECT_EQ(
      rig.sql("SELECT count(*), count(DISTINCT event_id) FROM cn_relay.events_outbox WHERE reason = 'dsar'"),
      Rows{fmt::format("{0}|{0}", kEvents)});
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.event_topics"), "1");
}

// The pass has read the end of the table when the row is written anew there or anywhere.
TEST_F(VanishTest, ARowThatMovesDuringThePassIsFoundByTheNextOne) {
  const auto event = global_note(alice, "moves");
  store_at(client, event);
  rig.stop();
  pass_over_alice(unix_now() + 60);
  rig.sql(
      fmt::format("SELECT cn_relay.retire(event_id, ingested_at, lifetime, 'deleted') FROM cn_relay.events "
                  "WHERE event_id = '{}'",
                  hex_of(event)));
  EXPECT_EQ(rig.value("SELECT moved FROM cn_relay.vanish_requests"), "t");
  rig.start();
  await_done();
  EXPECT_THAT(traces_of(alice, {event}), IsEmpty());
}

TEST_F(VanishTest, ARowThatIsKeptLongerDuringThePassIsFoundByTheNextOne) {
  const auto event = global_note(alice, "moves");
  store_at(client, event);
  rig.stop();
  pass_over_alice(unix_now() + 60);
  rig.sql("SELECT cn_relay.keep_events(array_agg(event_id), array_agg(ingested_at)) FROM cn_relay.events");
  EXPECT_EQ(rig.value("SELECT moved FROM cn_relay.vanish_requests"), "t");
  rig.start();
  await_done();
  EXPECT_THAT(traces_of(alice, {event}), IsEmpty());
}

TEST_F(VanishTest, RowsThatThePassDoesNotLookForKeepNoRequestOpen) {
  const auto time = unix_now();
  const auto newer = global_note(alice, "newer", {{"d", "x"}}, 30023, time);
  const auto of_bob = global_note(bob, "of bob", {{"p", hex_of(alice)}});
  store_at(client, newer);
  store_at(client, of_bob);
  rig.stop();
  pass_over_alice(time - 1);
  rig.sql("SELECT cn_relay.retire(event_id, ingested_at, lifetime, 'deleted') FROM cn_relay.events");
  rig.sql(
      "SELECT cn_relay.keep_events(array_agg(event_id), array_agg(ingested_at)) FROM cn_relay.events "
      "WHERE lifetime = 'r'");
  EXPECT_EQ(rig.value("SELECT moved FROM cn_relay.vanish_requests"), "f");
  rig.start();
  await_done();
  EXPECT_EQ(rig.value("SELECT number FROM cn_relay.erase_pass"), "1") << "one pass was enough";
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.events"), "2");
}

// What the pass has read so far was read for the earlier request.
TEST_F(VanishTest, ARequestThatIsRepeatedDuringThePassGetsAnotherOne) {
  const auto time = unix_now();
  const auto event = global_note(alice, "between", {}, 1, time - 5);
  store_at(client, event);
  rig.stop();
  pass_over_alice(time - 10);
  rig.sql("UPDATE cn_relay.vanish_requests SET moved = true");
  SqlSession holder(rig.database()->url());
  holder.run(fmt::format("UPDATE cn_relay.vanish_requests SET until = {}, pass = NULL", time));
  rig.start();
  await_done();
  EXPECT_THAT(traces_of(alice, {event}), IsEmpty());
}

TEST_F(VanishTest, WhoAsksWhileAPassRestsWaitsAndSharesTheNextOne) {
  std::vector<Event> events;
  std::vector<SecretKey> keys;
  vanish(bob);
  EXPECT_EQ(rig.value("SELECT rest_until > now() FROM cn_relay.erase_pass"), "t");
  rig.sql("UPDATE cn_relay.erase_pass SET rest_until = now() + interval '1 day'");
  for (int i = 0; i < 3; ++i) {
    keys.push_back(SecretKey::generate());
    events.push_back(global_note(keys.back(), "one of three"));
    store_at(client, events.back());
    store_at(client, request_of(keys.back()));
  }
  // The eraser has looked, and begun nothing.
  EXPECT_TRUE(rig.await_metric("todoke_vanish_requests_waiting", 3));
  EXPECT_EQ(rig.value("SELECT number FROM cn_relay.erase_pass"), "1");
  EXPECT_EQ(client.publish(events[0]).text, "duplicate: already stored");
  end_rest();
  await_done();
  EXPECT_EQ(rig.value("SELECT number FROM cn_relay.erase_pass"), "2");
  for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_THAT(traces_of(keys[i], events), IsEmpty());
}

TEST_F(VanishTest, APassRestsSeveralTimesAsLongAsItTookWithinBounds) {
  const auto rest_after = [&](const std::string& took) {
    rig.sql(
        fmt::format("UPDATE cn_relay.erase_pass SET under_way = true, began_at = now() - interval '{}', "
                    "next_block = 0, events_end = 0, versions_end = 0",
                    took));
    rig.await_sql("SELECT under_way FROM cn_relay.erase_pass", {"f"});
    return std::stod(rig.value("SELECT extract(epoch FROM rest_until - began_at) FROM cn_relay.erase_pass"));
  };
  // Five times as long from its beginning; five seconds at least; an hour at most.
  EXPECT_GE(rest_after("100 s"), 500);
  EXPECT_GE(rest_after("0 s"), 5);
  const auto day = 86'400.0;
  const auto long_rest = rest_after("1 day");
  EXPECT_GE(long_rest, day + 3'600);
  EXPECT_LT(long_rest, 2 * day);
}

// Whoever moves rows has the log's lock: the pass begins when all that was moved before can be seen.
TEST_F(VanishTest, APassBeginsAfterThoseWhoMoveRowsHaveEnded) {
  const auto event = global_note(alice, "moves");
  store_at(client, event);
  SqlSession holder(rig.database()->url());
  holder.run("BEGIN");
  holder.run("SELECT cn_relay.lock_log()");
  holder.run("SELECT cn_relay.retire(event_id, ingested_at, lifetime, 'deleted') FROM cn_relay.events");
  rig.sql(
      fmt::format("INSERT INTO cn_relay.vanish_requests (pubkey, request_id, until) VALUES ('{}', '', {})",
                  hex_of(alice), unix_now() + 60));
  await_eraser_at_the_log();
  EXPECT_EQ(rig.sql("SELECT p.under_way, q.pass FROM cn_relay.erase_pass p, cn_relay.vanish_requests q"),
            Rows{"f|"});
  holder.run("COMMIT");
  await_done();
  EXPECT_THAT(traces_of(alice, {event}), IsEmpty());
}

// A consumer may fail with an event as long as it is there.
TEST_F(VanishTest, ALetterThatIsWrittenWhileTheEventGoesGoesWithIt) {
  const auto event = global_note(alice, "poison");
  store_at(client, event);
  SqlSession holder(rig.database()->url());
  holder.run("BEGIN");
  holder.run("SELECT cn_relay.lock_log()");
  rig.sql(fmt::format(
      "INSERT INTO cn_relay.vanish_requests (pubkey, request_id, until, pass) VALUES ('{}', '', {}, 1)",
      hex_of(alice), unix_now() + 60));
  rig.sql("UPDATE cn_relay.erase_pass SET number = 1, under_way = true, events_end = 1");
  // It has found the event and is about to erase it.
  await_eraser_at_the_log();
  rig.sql(fmt::format(
      "INSERT INTO cn_relay.consumer_dead_letters (consumer, seq, op, event_id, topic_id, error, tries) "
      "VALUES ('feed', 1, 'upsert', '{}', 'kukuri:global', 'poison', 3)",
      hex_of(event)));
  holder.run("COMMIT");
  await_done();
  EXPECT_THAT(traces_of(alice, {event}), IsEmpty());
}

TEST_F(VanishTest, TwoRelaysEraseEachEventOnce) {
  const RelayRig second(NodeRigOptions{.roles = {}, .flags = kNamed, .database = rig.database()});
  constexpr int kEvents = 250;
  for (int i = 0; i < kEvents; ++i) {
    client.send(fmt::format(R"(["EVENT",{}])", global_note(alice, std::to_string(i)).json()));
  }
  for (int i = 0; i < kEvents; ++i) EXPECT_TRUE(parse_ok(client.receive(R"(["OK")")).accepted);
  vanish(alice);
  EXPECT_EQ(
      rig.sql("SELECT count(*), count(DISTINCT event_id) FROM cn_relay.events_outbox WHERE reason = 'dsar'"),
      Rows{fmt::format("{0}|{0}", kEvents)});
}

TEST_F(VanishTest, AMarkWhoseEventWasPurgedGoesWithItsContent) {
  const auto version = global_note(alice, "version", {{"d", "x"}}, 30023, kTime);
  store_at(client, version);
  rig.sql("DELETE FROM cn_relay.events");
  vanish(alice);
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.current_versions"), "0");
}

TEST_F(VanishTest, SubscribersOfAnotherRelayAndItsMemoryFollow) {
  RelayRig second(NodeRigOptions{.roles = {}, .flags = kNamed, .database = rig.database()});
  NostrClient there(second.url());
  const auto event = global_note(alice, "hello");
  store_at(client, event);
  ASSERT_TRUE(await([&] {
    return there.stored(kGlobal).ids == Ids{hex_of(event)} && second.metric("todoke_query_memory_total") > 0;
  }));
  vanish(alice, unix_now() + 5);
  EXPECT_TRUE(await([&] { return there.stored(kGlobal).ids.empty(); }));
  EXPECT_EQ(there.publish(event).text, "blocked: vanished by request");
}

TEST(VanishIndexTest, NothingOfTheTextIsLeftInTheIndex) {
  RelayRig rig(NodeRigOptions{.roles = {"index"}, .flags = {{"relay.topic_policy", "open"}}});
  NostrClient client(rig.url());
  const auto alice = SecretKey::generate();
  const auto post = note(alice, "a quick fox", {});
  store_at(client, post);
  rig.await_index();
  EXPECT_THAT(client.stored(R"({"search":"quick"})").ids, ElementsAre(hex_of(post)));
  const auto request = note(alice, "", {{"relay", "ALL_RELAYS"}}, nostr::kVanish);
  store_at(client, request);
  rig.await_sql("SELECT count(*) FROM cn_relay.vanish_requests WHERE done_at IS NULL", {"0"});
  rig.await_index();
  EXPECT_THAT(client.stored(R"({"search":"quick"})").ids, IsEmpty());
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_search.post_search_documents WHERE tokens <> ''"), "0");
  // With this policy the request is served like any event.
  EXPECT_THAT(client.stored(R"({"kinds":[62]})").ids, ElementsAre(hex_of(request)));
}

}  // namespace
}  // namespace todoke::test

// What arrives while a subscription is open: everything that matches, once, in order, on every relay.
#include <cerrno>
#include <cstring>
#include <set>
#include <signal.h>
#include <thread>

#include <fmt/format.h>

#include "support.hpp"

namespace todoke::test {
namespace {

// The ids that arrive for `sub` up to that of `last`.
Ids live_until(NostrClient& client, const std::string& sub, const Event& last) {
  Ids ids;
  do {
    ids.push_back(id_in(client.live(sub)));
  } while (ids.back() != hex_of(last));
  return ids;
}

// With the connections on a loop of their own, and on that of the services.
class LiveTest : public testing::TestWithParam<bool> {
 protected:
  void store(const Event& event) { store_at(client, event); }
  RelayRig rig{NodeRigOptions{.roles = {}, .flags = {}, .one_loop = GetParam()}};
  NostrClient client{rig.url()};
  NostrClient subscriber{rig.url()};
  SecretKey alice = SecretKey::generate();
  SecretKey bob = SecretKey::generate();
};

INSTANTIATE_TEST_SUITE_P(, LiveTest, testing::Bool(),
                         [](const auto& one) { return one.param ? "OneLoop" : "TwoLoops"; });

TEST_P(LiveTest, EventReachesEverySubscriptionThatMatchesOnce) {
  subscriber.request("all", kGlobal);
  subscriber.request("twice", std::string(kGlobal) + "," + global_and(R"("kinds":[1])"));
  subscriber.request("kind 7", global_and(R"("kinds":[7])"));
  client.request("own", kGlobal);
  const auto event = global_note(alice, "hello");
  const auto last = global_note(alice, "last", {}, 7);
  store(event);
  store(last);
  EXPECT_EQ(live_until(subscriber, "all", last), hexes_of({event, last}));
  EXPECT_EQ(live_until(subscriber, "twice", last), hexes_of({event, last}));
  EXPECT_EQ(live_until(subscriber, "kind 7", last), hexes_of({last}));
  EXPECT_EQ(live_until(client, "own", last), hexes_of({event, last}));
}

TEST_P(LiveTest, DeliveredEventIsTheStoredOneByteForByte) {
  subscriber.request("s", kGlobal);
  const auto event =
      global_note(alice, std::string("nul \0 and \x7f/\u2028", 15), {{"x", std::string("\0", 1)}});
  store(event);
  EXPECT_EQ(subscriber.receive(), fmt::format(R"(["EVENT","s",{}])", event.json()));
}

TEST_P(LiveTest, RefusedAndRepeatedEventsAreNotDelivered) {
  const auto first = global_note(alice, "before");
  store(first);
  subscriber.request("s", global_and(R"("limit":0)"));
  EXPECT_TRUE(client.publish(first).accepted);
  EXPECT_FALSE(client.publish(global_note(alice, "", {{"expiration", "1"}})).accepted);
  auto forged = std::string(global_note(alice, "forged").json());
  forged.replace(forged.find("forged"), 6, "forger");
  EXPECT_FALSE(client.publish_json(forged).accepted);
  const auto last = global_note(alice, "last");
  store(last);
  EXPECT_EQ(live_until(subscriber, "s", last), hexes_of({last}));
}

TEST_P(LiveTest, LimitDoesNotCutWhatComes) {
  subscriber.request("s", global_and(R"("limit":1)"));
  std::vector<Event> events;
  for (int i = 0; i < 5; ++i) {
    events.push_back(global_note(alice, std::to_string(i)));
    store(events.back());
  }
  EXPECT_EQ(live_until(subscriber, "s", events.back()), hexes_of(events));
}

TEST_P(LiveTest, OldEventsThatComeNowAreDeliveredUnlessTheirTimeIsExcluded) {
  subscriber.request("any time", kGlobal);
  subscriber.request("since", global_and(fmt::format(R"("since":{})", kTime)));
  subscriber.request("until", global_and(fmt::format(R"("until":{})", kTime)));
  const auto before = global_note(alice, "", {}, 1, kTime - 1);
  const auto at = global_note(alice, "", {}, 1, kTime);
  const auto after = global_note(alice, "", {}, 1, kTime + 1);
  store(before);
  store(after);
  store(at);
  EXPECT_EQ(live_until(subscriber, "any time", at), hexes_of({before, after, at}));
  EXPECT_EQ(live_until(subscriber, "since", at), hexes_of({after, at}));
  EXPECT_EQ(live_until(subscriber, "until", at), hexes_of({before, at}));
}

TEST_P(LiveTest, RequestWithTheSameIdTakesThePlaceOfTheOldOne) {
  const auto stored = global_note(alice, "stored", {}, 7);
  store(stored);
  subscriber.request("s", global_and(R"("kinds":[1])"));
  EXPECT_THAT(subscriber.request("s", global_and(R"("kinds":[7])")).ids, ElementsAre(hex_of(stored)));
  EXPECT_EQ(rig.metric("todoke_ws_subscriptions"), 1);
  store(global_note(alice, "no longer asked for", {}, 1));
  const auto wanted = global_note(alice, "asked for", {}, 7);
  store(wanted);
  EXPECT_EQ(live_until(subscriber, "s", wanted), hexes_of({wanted}));
}

TEST_P(LiveTest, ClosedMeansThatNothingIsOpenByThatName) {
  const std::string refused[] = {R"(["REQ","s",{"kinds":[1]}])", R"(["REQ","s",{"foo":1}])", R"(["REQ","s"])",
                                 R"(["COUNT","s",{"kinds":[1]}])", R"(["COUNT","s",{"foo":1}])"};
  for (const auto& message : refused) {
    subscriber.request("s", kGlobal);
    subscriber.request("other", kGlobal);
    subscriber.send(message);
    EXPECT_THAT(subscriber.receive(), StartsWith(R"(["CLOSED","s",)"));
    const auto event = global_note(alice, message);
    store(event);
    EXPECT_EQ(subscriber.receive(), fmt::format(R"(["EVENT","other",{}])", event.json())) << message;
    EXPECT_EQ(rig.metric("todoke_ws_subscriptions"), 1) << message;
  }
}

TEST_P(LiveTest, NewVersionsAreDelivered) {
  subscriber.request("s", kGlobal);
  const auto older = global_note(alice, "older", {{"d", "x"}}, 30023, kTime);
  const auto newer = global_note(alice, "newer", {{"d", "x"}}, 30023, kTime + 1);
  store(older);
  store(newer);
  EXPECT_FALSE(client.publish(older).accepted);
  const auto last = global_note(alice, "last");
  store(last);
  EXPECT_EQ(live_until(subscriber, "s", last), hexes_of({older, newer, last}));
}

TEST_P(LiveTest, DeletionRequestIsDelivered) {
  subscriber.request("s", kGlobal);
  const auto event = global_note(alice, "regretted");
  const auto request = deletion_of(alice, {{"e", hex_of(event)}});
  store(event);
  store(request);
  EXPECT_EQ(live_until(subscriber, "s", request), hexes_of({event, request}));
}

TEST_P(LiveTest, OrderIsThatOfTheLog) {
  subscriber.request("s", kGlobal);
  std::vector<Event> events;
  for (int i = 0; i < 100; ++i) events.push_back(global_note(alice, std::to_string(i), {}, 1, kTime - i % 7));
  for (const auto& event : events) client.send(fmt::format(R"(["EVENT",{}])", event.json()));
  Ids got;
  for (std::size_t i = 0; i < events.size(); ++i) got.push_back(id_in(subscriber.live("s")));
  EXPECT_EQ(got, rig.sql("SELECT event_id FROM cn_relay.events ORDER BY ingested_seq"));
}

TEST_P(LiveTest, NothingIsLostOrRepeatedBetweenStoredAndLive) {
  constexpr int kEvents = 400;
  std::vector<Event> events;
  for (int i = 0; i < kEvents; ++i) events.push_back(global_note(alice, std::to_string(i), {}, 1, kTime - i));
  const auto last = global_note(alice, "last", {}, 7);
  std::thread publisher([&] {
    NostrClient sender(rig.url());
    for (const auto& event : events) sender.send(fmt::format(R"(["EVENT",{}])", event.json()));
    for (int i = 0; i < kEvents; ++i) sender.receive(R"(["OK",)");
    sender.publish(last);
  });
  // From the tables at first, from memory later, with and without the order of the log.
  std::vector<std::pair<std::string, Ids>> subs;
  for (int i = 0; i < 12; ++i) {
    const auto sub = fmt::format("s{}", i);
    const auto filter =
        i % 3 == 0 ? global_and(R"("seq_after":0,"limit":5000)") : global_and(R"("limit":5000)");
    subs.emplace_back(sub, subscriber.request(sub, filter).ids);
  }
  publisher.join();
  auto wanted = hexes_of(events);
  wanted.push_back(hex_of(last));
  for (auto& [sub, ids] : subs) {
    if (std::find(ids.begin(), ids.end(), hex_of(last)) == ids.end()) {
      for (const auto& id : live_until(subscriber, sub, last)) ids.push_back(id);
    }
    EXPECT_THAT(ids, testing::UnorderedElementsAreArray(wanted)) << sub;
  }
}

TEST_F(TwoRelaysTest, EventOfOneArrivesLiveAtTheOther) {
  at_a.request("s", kGlobal);
  at_b.request("s", kGlobal);
  const auto one = global_note(alice, std::string("one \0", 5));
  const auto two = global_note(alice, "two");
  store_at(at_a, one);
  EXPECT_EQ(at_b.live("s"), one.json());
  store_at(at_b, two);
  EXPECT_EQ(at_a.live("s"), one.json());
  EXPECT_EQ(at_a.live("s"), two.json());
  EXPECT_EQ(at_b.live("s"), two.json());
}

TEST_F(TwoRelaysTest, WhatOneHasStoredTheOtherKnows) {
  const auto event = global_note(alice, "once");
  const auto version = global_note(alice, "v2", {}, 10002, kTime + 1);
  store_at(at_a, event);
  store_at(at_a, version);
  EXPECT_EQ(at_b.publish(event).text, "duplicate: already stored");
  EXPECT_EQ(at_b.publish(global_note(alice, "v1", {}, 10002, kTime)).text, "duplicate: newer version stored");
  at_a.request("s", kGlobal);
  const auto request = deletion_of(alice, {{"e", hex_of(event)}});
  store_at(at_b, request);
  EXPECT_EQ(at_a.live("s"), request.json());
  EXPECT_EQ(at_a.publish(event).text, "blocked: deleted by author");
  EXPECT_THAT(at_a.stored(by_id(event)).ids, IsEmpty());
}

TEST_F(TwoRelaysTest, DeletionAndReplacementReachTheMemoryOfTheOther) {
  const auto event = global_note(alice, "regretted");
  const auto older = global_note(alice, "older", {}, 10002, kTime);
  const auto newer = global_note(alice, "newer", {}, 10002, kTime + 1);
  store_at(at_a, event);
  store_at(at_a, older);
  // Until the answer comes from memory.
  ASSERT_TRUE(await([&] {
    at_b.stored(kGlobal);
    return b.metric("todoke_query_memory_total") > 0;
  }));
  at_b.request("watch", kGlobal);
  store_at(at_a, newer);
  const auto request = deletion_of(alice, {{"e", hex_of(event)}}, kTime + 2);
  store_at(at_a, request);
  while (id_in(at_b.live("watch")) != hex_of(request)) {
  }
  EXPECT_EQ(at_b.stored(kGlobal).ids, hexes_of({request, newer}));
}

TEST_F(TwoRelaysTest, WhatGotItsOkIsFoundAtOnceWhileTheOtherWritesToo) {
  at_a.stored(kGlobal);
  std::atomic<bool> done = false;
  std::thread noise([&] {
    NostrClient sender(b.url());
    const auto key = SecretKey::generate();
    for (int i = 0; !done; ++i) sender.publish(global_note(key, std::to_string(i)));
  });
  std::size_t missing = 0;
  for (int i = 0; i < 150; ++i) {
    const auto event = global_note(alice, std::to_string(i));
    store_at(at_a, event);
    const auto ids =
        at_a.stored(global_and(fmt::format(R"("authors":["{}"],"limit":1000)", hex_of(alice)))).ids;
    if (std::find(ids.begin(), ids.end(), hex_of(event)) == ids.end()) ++missing;
  }
  done = true;
  noise.join();
  EXPECT_EQ(missing, 0U);
}

TEST_F(TwoRelaysTest, BothDeliverEverythingThatStaysInEffectOnceAndNothingAfterItsSuccessor) {
  constexpr int kVersions = 60;
  at_a.request("s", kGlobal);
  at_b.request("s", kGlobal);
  const auto publish = [&](const std::string& url, int parity) {
    NostrClient sender(url);
    for (int i = 0; i < kVersions; ++i) {
      const auto time = kTime + 2 * i + parity;
      sender.publish(global_note(alice, "version", {{"d", std::to_string(i % 3)}}, 30023, time));
      sender.publish(global_note(alice, fmt::format("note {} {}", i, parity), {}, 1, time));
    }
  };
  std::thread other([&] { publish(b.url(), 1); });
  publish(a.url(), 0);
  other.join();
  const auto last = global_note(alice, "last");
  store_at(at_a, last);
  const auto effective = a.sql("SELECT event_id FROM cn_relay.effective_events");
  const auto order = a.sql("SELECT event_id FROM cn_relay.events ORDER BY ingested_seq");
  for (auto* subscriber : {&at_a, &at_b}) {
    Ids got;
    while (got.empty() || got.back() != hex_of(last)) got.push_back(id_in(subscriber->live("s")));
    EXPECT_EQ(std::set<std::string>(got.begin(), got.end()).size(), got.size()) << "something came twice";
    EXPECT_THAT(got, testing::IsSupersetOf(effective));
    // In the order of the log: so nothing came after its successor.
    Ids in_order = order;
    std::erase_if(in_order,
                  [&](const auto& id) { return std::find(got.begin(), got.end(), id) == got.end(); });
    EXPECT_EQ(got, in_order);
  }
}

TEST_F(TwoRelaysTest, RelayThatWasAwayServesWhatCameMeanwhile) {
  b.stop();
  const auto event = global_note(alice, "meanwhile");
  store_at(at_a, event);
  b.start();
  NostrClient back(b.url());
  EXPECT_THAT(back.request("s", kGlobal).ids, ElementsAre(hex_of(event)));
  const auto next = global_note(alice, "next");
  store_at(at_a, next);
  EXPECT_EQ(back.live("s"), next.json());
}

TEST_P(LiveTest, CountsThatComeTogetherAreAllAnswered) {
  store(global_note(alice, "one"));
  for (int i = 0; i < 30; ++i) client.send(fmt::format(R"(["COUNT","c{}",{}])", i, kGlobal));
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(client.receive(fmt::format(R"(["COUNT","c{}",)", i)),
              fmt::format(R"(["COUNT","c{}",{{"count":1}}])", i));
  }
  // Beyond what may wait: each gets an answer all the same.
  for (int i = 0; i < 200; ++i) client.send(fmt::format(R"(["COUNT","d{}",{}])", i, kGlobal));
  int answers = 0;
  for (; answers < 200; ++answers) {
    const auto answer = client.receive();
    if (answer.starts_with(R"(["CLOSED")")) {
      EXPECT_THAT(answer, HasSubstr("rate-limited: slow down"));
    } else {
      EXPECT_THAT(answer, HasSubstr(R"({"count":1})"));
    }
  }
  EXPECT_THAT(client.drain(), IsEmpty());
}

TEST_P(LiveTest, ARowOfTheLogThatNobodyCanReadIsPassedOver) {
  subscriber.request("s", kGlobal);
  rig.sql(
      "INSERT INTO cn_relay.events_outbox (op, event_id, topic_id, kind, created_at, ingested_at) "
      "VALUES ('delete', 'no id', 'kukuri:global', 1, 1, now())");
  const auto event = global_note(alice, "after it");
  store(event);
  EXPECT_EQ(live_until(subscriber, "s", event), hexes_of({event}));
  EXPECT_TRUE(rig.await_metric("todoke_live_unreadable_total", 1));
}

// The connection that follows the log is stopped in the middle; more is stored meanwhile than may wait.
TEST_P(LiveTest, WhatWasLetGoWhileTheLogCouldNotBeReadArrivesOnceAndInOrder) {
  subscriber.request("s", kGlobal);
  const auto pid = static_cast<pid_t>(std::stol(
      rig.value("SELECT pid FROM pg_stat_activity WHERE application_name = 'todoke live' AND datname = "
                "current_database()")));
  ASSERT_EQ(kill(pid, SIGSTOP), 0) << std::strerror(errno);
  // Somebody else's row, which has to be fetched before anything that comes after it.
  rig.sql(
      "INSERT INTO cn_relay.events_outbox (op, event_id, topic_id, kind, created_at, ingested_at) "
      "VALUES ('delete', repeat('a', 64), 'kukuri:global', 1, 1, now())");
  std::vector<Event> events;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (rig.metric("todoke_live_batches_let_go_total") == 0 && std::chrono::steady_clock::now() < deadline) {
    for (int i = 0; i < 100; ++i) {
      events.push_back(global_note(alice, std::to_string(events.size())));
      store(events.back());
    }
  }
  ASSERT_EQ(kill(pid, SIGCONT), 0);
  EXPECT_GT(rig.metric("todoke_live_batches_let_go_total"), 0);
  EXPECT_EQ(live_until(subscriber, "s", events.back()), hexes_of(events));
}

}  // namespace
}  // namespace todoke::test

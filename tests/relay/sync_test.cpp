// `todoke sync` and `todoke backfill` between databases: what travels, what is stored, what they stop at.
#include <algorithm>
#include <mutex>

#include <fmt/format.h>

#include "harness/http_rig.hpp"
#include "harness/todoke_process.hpp"
#include "nostr/event_parse.hpp"
#include "nostr/filter.hpp"
#include "nostr/negentropy.hpp"
#include "nostr/replies.hpp"
#include "nostr/wire.hpp"
#include "support.hpp"

namespace todoke::test {
namespace {

Ids in_order(Ids ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

// A relay that knows nothing of todoke: no seq_after, no hints, at most `limit` events for a REQ; NIP-77
// where it is told to.
struct PlainRelayOptions {
  bool negentropy = false;
  std::size_t limit = 1'000;
};

class PlainSession final : public net::WsHandler {
 public:
  PlainSession(const std::vector<Event>& events, PlainRelayOptions options)
      : events_(events), options_(options) {}

  void on_open(const std::shared_ptr<net::WsConnection>& connection) override { connection_ = connection; }
  void on_close(std::uint16_t, std::string_view) override { connection_.reset(); }
  void on_message(net::WsOpcode, std::string_view text) override {
    auto message = nostr::parse_client_message(text, {}).value();
    if (const auto* req = std::get_if<nostr::ReqMessage>(&message)) return answer(*req);
    if (std::holds_alternative<nostr::CloseMessage>(message)) return;
    if (!options_.negentropy) return send(nostr::notice_message("ERROR: bad msg: unknown cmd"));
    if (const auto* open = std::get_if<nostr::NegOpenMessage>(&message)) {
      std::vector<nostr::NegItem> items;
      for (const auto& event : events_) {
        if (nostr::matches(open->filter, event)) items.push_back({event.created_at(), event.id()});
      }
      set_ = nostr::NegSet(std::move(items));
      send(nostr::neg_msg_message(open->sub, nostr::neg_answer(set_, open->message, 60'000).value()));
    } else if (const auto* next = std::get_if<nostr::NegMsgMessage>(&message)) {
      send(nostr::neg_msg_message(next->sub, nostr::neg_answer(set_, next->message, 60'000).value()));
    }
  }

 private:
  void answer(const nostr::ReqMessage& req) {
    const auto& filter = req.filters.front();
    auto left = std::min<std::size_t>(filter.limit.value_or(500), options_.limit);
    for (const auto& event : events_) {
      if (left == 0 || !nostr::matches(filter, event)) continue;
      --left;
      send(nostr::event_message(req.sub, event.json()));
    }
    send(nostr::eose_message(req.sub, {}));
  }
  void send(std::string_view text) { connection_->send_text(text); }

  const std::vector<Event>& events_;
  const PlainRelayOptions options_;
  nostr::NegSet set_;
  std::shared_ptr<net::WsConnection> connection_;
};

class PlainRelay {
 public:
  // Newest first.
  PlainRelay(std::vector<Event> events, PlainRelayOptions options) : events_(std::move(events)) {
    rig_.router->add_websocket("/",
                               [this, options](const net::Request&) -> std::shared_ptr<net::WsHandler> {
                                 return std::make_shared<PlainSession>(events_, options);
                               },
                               {});
    rig_.start();
  }
  [[nodiscard]] std::string url() const { return fmt::format("ws://127.0.0.1:{}/", rig_.port()); }

 private:
  const std::vector<Event> events_;
  net::test::Rig rig_;
};

class SyncTest : public testing::Test {
 protected:
  Exit run(std::vector<std::string> words) const {
    words.insert(words.begin(), todoke_binary());
    words.insert(words.end(), {"--data_dir", folder.path().string()});
    return run_command(words, {"DATABASE_URL=" + here.database()->url()});
  }
  // stderr of a command that succeeds.
  std::string done(std::vector<std::string> words) const {
    const auto exit = run(std::move(words));
    EXPECT_EQ(exit.code, 0) << exit.err;
    return exit.err;
  }
  std::string failed(std::vector<std::string> words) const {
    const auto exit = run(std::move(words));
    EXPECT_EQ(exit.code, 1) << exit.err;
    return exit.err;
  }
  std::string sync(const std::string& direction) const {
    return done({"sync", "--with", there.url(), "--filter", kGlobal, "--dir", direction});
  }

  std::vector<Event> notes(int count, std::int64_t every = 1) const {
    std::vector<Event> events;
    for (int i = 0; i < count; ++i) {
      events.push_back(global_note(alice, std::to_string(i), {}, 1, kTime - i * every));
    }
    return events;
  }
  static void store_all(NostrClient& client, const std::vector<Event>& events) {
    for (const auto& event : events) store_at(client, event);
  }
  Ids ids_of(const RelayRig& rig) const {
    Ids ids;
    for (const auto& row : rig.sql("SELECT event_id FROM cn_relay.effective_events ORDER BY event_id"))
      ids.push_back(row);
    return ids;
  }

  const TempFolder folder;
  RelayRig here;
  RelayRig there;
  NostrClient at_here{here.url()};
  NostrClient at_there{there.url()};
  SecretKey alice = SecretKey::generate();
};

TEST_F(SyncTest, DownBringsWhatIsLackingHereAndNothingElse) {
  const auto events = notes(40);
  store_all(at_there, events);
  store_all(at_here, {events.begin() + 3, events.end()});
  store_at(at_here, global_note(alice, "mine"));
  EXPECT_EQ(at_here.request("live", global_and(R"("limit":0)")).closed, "");
  const auto told = sync("down");
  EXPECT_THAT(told, HasSubstr("down: 3 were lacking here, 3 came: 3 stored, 0 there already, 0 refused"));
  Ids live;
  for (int i = 0; i < 3; ++i) live.push_back(id_in(at_here.live("live")));
  EXPECT_EQ(in_order(live), in_order(hexes_of({events.begin(), events.begin() + 3})));
  EXPECT_EQ(here.value("SELECT count(*) FROM cn_relay.events WHERE source = 'import'"), "3");
  EXPECT_EQ(ids_of(there), in_order(hexes_of(events))) << "nothing went there";
  EXPECT_THAT(sync("down"), HasSubstr("down: 0 were lacking here, 0 came"))
      << "a second time there is nothing to do";
}

TEST_F(SyncTest, UpSendsWhatThePeerLacksButNothingPrivate) {
  const auto events = notes(5);
  store_all(at_here, events);
  store_at(at_there, events[0]);
  store_at(at_here, global_note(alice, "sealed", {{"p", alice.pubkey().hex()}}, 1059));
  EXPECT_THAT(
      sync("up"),
      HasSubstr("up: 4 taken by the peer, 0 there already, 0 refused; 1 not for everybody stay here"));
  EXPECT_EQ(ids_of(there), in_order(hexes_of(events)));
}

TEST_F(SyncTest, BothLeaveTheSameEventsOnBothSides) {
  const auto events = notes(300);
  store_all(at_here, {events.begin(), events.begin() + 200});
  store_all(at_there, {events.begin() + 100, events.end()});
  sync("both");
  EXPECT_EQ(ids_of(here), in_order(hexes_of(events)));
  EXPECT_EQ(ids_of(there), in_order(hexes_of(events)));
}

TEST_F(SyncTest, MoreThanThePeerComparesAtOnceIsSplitByTime) {
  const auto events = notes(40, 1'000'000);
  store_all(at_there, events);
  there.change({{"relay.negentropy_events_max", "10"}});
  EXPECT_THAT(sync("down"), HasSubstr("40 came: 40 stored"));
  EXPECT_EQ(ids_of(here), in_order(hexes_of(events)));
}

TEST_F(SyncTest, PeerWithoutNip77IsNamedAsSuch) {
  const PlainRelay plain({}, {});
  EXPECT_THAT(failed({"sync", "--with", plain.url(), "--filter", kGlobal}),
              HasSubstr("the peer does not know NIP-77: it says 'ERROR: bad msg: unknown cmd'"));
}

TEST_F(SyncTest, QuestionThatCanNotBeAskedIsRefusedBeforeAnythingTravels) {
  EXPECT_THAT(failed({"sync", "--with", there.url()}), HasSubstr("the filter needs #t"));
  EXPECT_THAT(failed({"sync", "--with", there.url(), "--filter",
                      R"({"#t":["kukuri:user:)" + std::string(64, 'a') + R"("]})"}),
              HasSubstr("the peer refuses: restricted: topic not enabled"));
  EXPECT_EQ(run({"sync", "--filter", kGlobal}).code, 2);
  EXPECT_EQ(run({"sync", "--with", there.url(), "--filter", "[]"}).code, 2);
  EXPECT_EQ(run({"sync", "--with", there.url(), "--dir", "sideways"}).code, 2);
}

TEST_F(SyncTest, EventsThatThePeerForgesAreNotStored) {
  auto forged = std::string(global_note(alice, "good", {}, 1, kTime).json());
  forged.replace(forged.find("good"), 4, "evil");
  const PlainRelay plain(
      {nostr::parse_event(forged, {}).value(), global_note(alice, "right", {}, 1, kTime - 1)},
      {.negentropy = true});
  EXPECT_THAT(done({"sync", "--with", plain.url(), "--filter", kGlobal}),
              HasSubstr("2 came: 1 stored, 0 there already, 1 refused\n         1  invalid: bad id"));
}

class BackfillTest : public SyncTest {
 protected:
  std::string backfill(const std::string& url) const { return done({"backfill", "--from", url}); }
};

TEST_F(BackfillTest, TopicsAreFilledByTheOrderOfTheLogAndGoOnFromThere) {
  const auto events = notes(30);
  store_all(at_there, {events.begin(), events.begin() + 20});
  store_at(at_here, events[0]);
  EXPECT_THAT(backfill(there.url()),
              HasSubstr("1 of 1 topics filled: 19 stored, 1 there already, 0 refused"));
  EXPECT_EQ(here.value("SELECT count(*) FROM cn_relay.events WHERE source = 'backfill'"), "19");
  store_all(at_there, {events.begin() + 20, events.end()});
  EXPECT_THAT(backfill(there.url()), HasSubstr("10 stored, 0 there already"))
      << "only what is new was asked for";
  EXPECT_EQ(ids_of(here), in_order(hexes_of(events)));
}

TEST_F(BackfillTest, PeerWhoseLogIsAnotherOneIsAskedFromTheBeginning) {
  store_all(at_there, notes(3));
  backfill(there.url());
  here.sql("UPDATE cn_relay.backfill_cursors SET seq = 1000000");
  EXPECT_THAT(backfill(there.url()), HasSubstr("0 stored, 3 there already"));
}

TEST_F(BackfillTest, TopicThatAllowsNoneIsLeftOut) {
  store_all(at_there, notes(3));
  here.sql(R"(UPDATE cn_relay.node_subscriptions SET ingest_policy = '{"allow_backfill": false}')");
  EXPECT_THAT(backfill(there.url()), HasSubstr("0 of 0 topics filled: 0 stored"));
  EXPECT_THAT(failed({"backfill", "--from", there.url(), "--topic", "kukuri:global"}),
              HasSubstr("allow_backfill = false"));
  EXPECT_THAT(failed({"backfill", "--from", there.url(), "--topic", topic('8')}),
              HasSubstr("is not enabled"));
}

TEST_F(BackfillTest, NodeThatIsNearlyFullTakesNone) {
  store_all(at_here, notes(20));
  const auto told = failed({"backfill", "--from", there.url(), "--capacity.max_events", "20"});
  EXPECT_THAT(told, HasSubstr("the node is pressed (step 3: it is nearly full)"));
}

TEST_F(BackfillTest, PeerThatIsNoTodokeIsCompared) {
  const auto events = notes(150);
  store_all(at_here, {events.begin() + 4, events.end()});
  const PlainRelay plain(events, {.negentropy = true, .limit = 1'000});
  EXPECT_THAT(backfill(plain.url()), HasSubstr("4 stored, 0 there already"));
  EXPECT_EQ(ids_of(here), in_order(hexes_of(events)));
}

TEST_F(BackfillTest, PeerWithoutNip77IsAskedByTimeWithAMargin) {
  // Several of one second, so that a page ends within it.
  auto events = notes(25, 100);
  for (int i = 0; i < 5; ++i)
    events.push_back(global_note(alice, fmt::format("same {}", i), {}, 1, kTime - 10'000));
  const PlainRelay plain(events, {.negentropy = false, .limit = 6});
  EXPECT_THAT(backfill(plain.url()), HasSubstr("30 stored"));
  EXPECT_EQ(ids_of(here), in_order(hexes_of(events)));
  EXPECT_THAT(backfill(plain.url()), HasSubstr("0 stored, 0 there already"))
      << "all of it is older than the margin";
}

// A node that gossip.backfill_from keeps filled.
class KeptFilledTest : public SyncTest {
 protected:
  void fill_from(const std::string& urls) { filled.change({{"gossip.backfill_from", urls}}); }
  bool await_stored(std::size_t count) const {
    return await([&] { return ids_of(filled).size() == count; });
  }
  bool await_asked(const std::string& outcome, double times) const {
    return await(
        [&] { return filled.metric("todoke_backfill_relays_total{outcome=\"" + outcome + "\"}") >= times; });
  }
  RelayRig filled{Flags{{"gossip.backfill_every", "1s"}}};
};

TEST_F(KeptFilledTest, GetsWhatIsThereAndWhatComesLater) {
  const auto events = notes(10);
  store_all(at_there, {events.begin(), events.begin() + 6});
  fill_from(there.url());
  EXPECT_TRUE(await_stored(6));
  store_all(at_there, {events.begin() + 6, events.end()});
  EXPECT_TRUE(await_stored(10));
  EXPECT_EQ(filled.value("SELECT count(*) FROM cn_relay.events WHERE source = 'backfill'"), "10");
  EXPECT_EQ(filled.metric(R"(todoke_backfill_events_total{outcome="known"})"), 0)
      << "only what is new is asked for";
}

TEST_F(KeptFilledTest, RelayThatCanNotBeReachedIsPassedOver) {
  store_all(at_there, notes(2));
  fill_from("ws://127.0.0.1:1/," + there.url());
  EXPECT_TRUE(await_stored(2));
  EXPECT_TRUE(await_asked("put_off", 1));
}

TEST_F(KeptFilledTest, RelaysThatAreNoTodokeAreComparedOrAskedByTime) {
  const auto events = notes(40);
  const PlainRelay comparing({events.begin(), events.begin() + 20}, {.negentropy = true, .limit = 1'000});
  const PlainRelay plain({events.begin() + 20, events.end()}, {.negentropy = false, .limit = 6});
  fill_from(comparing.url() + "," + plain.url());
  EXPECT_TRUE(await_stored(40));
}

TEST_F(KeptFilledTest, TopicThatAllowsNoneIsLeftOut) {
  store_all(at_there, notes(3));
  filled.sql(R"(UPDATE cn_relay.node_subscriptions SET ingest_policy = '{"allow_backfill": false}')");
  fill_from(there.url());
  ASSERT_TRUE(await_asked("done", 1));
  EXPECT_TRUE(ids_of(filled).empty());
}

TEST_F(KeptFilledTest, NodeUnderPressureAsksForNothingUntilItIsOver) {
  store_all(at_there, notes(3));
  filled.press(1);
  fill_from(there.url());
  EXPECT_TRUE(await_asked("put_off", 1));
  EXPECT_EQ(filled.metric(R"(todoke_backfill_relays_total{outcome="done"})"), 0);
  filled.press(0);
  EXPECT_TRUE(await_stored(3));
}

TEST_F(KeptFilledTest, WaitsWhileAnotherProcessOfTheDatabaseFills) {
  SqlSession holder(filled.database()->url());
  holder.run("SELECT pg_advisory_lock(cn_names.lock_backfill())");
  store_all(at_there, notes(3));
  fill_from(there.url());
  EXPECT_TRUE(await_asked("put_off", 1));
  EXPECT_TRUE(ids_of(filled).empty());
  holder.run("SELECT pg_advisory_unlock(cn_names.lock_backfill())");
  EXPECT_TRUE(await_stored(3));
}

}  // namespace
}  // namespace todoke::test

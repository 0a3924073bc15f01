#include "gossip/fill_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/run_task.hpp"
#include "nostr/signature.hpp"

namespace todoke::gossip {
namespace {

using namespace std::chrono_literals;
using nostr::Reason;
using testing::HasSubstr;
using testing::Not;

const std::string kServedTopic = "kukuri:global";

class TurnedClock final : public Clock {
 public:
  [[nodiscard]] SystemTime now() const override { return {}; }
  [[nodiscard]] SteadyTime steady() const override { return at; }
  SteadyTime at{1h};
};

outbox::TakenEvent event_with(std::vector<std::vector<std::string>> tags) {
  tags.push_back({"t", kServedTopic});
  outbox::TakenEvent event;
  event.event = std::make_shared<const nostr::Event>(
      nostr::sign_event({1'700'000'000, 1, std::move(tags), "text"}, nostr::SecretKey::generate()));
  event.topics = {kServedTopic};
  return event;
}

// One event that everybody may have, and one that only its author may bring.
class SmallStore final : public outbox::FillSource {
 public:
  Task<outbox::NegSetPtr> ids(outbox::FillSpan, outbox::FillView view, std::size_t events_max) override {
    EXPECT_EQ(view, outbox::FillView::everybody);
    if (too_many) co_return nullptr;
    std::vector<nostr::NegItem> items{{open.event->created_at(), open.event->id()}};
    EXPECT_GE(events_max, items.size());
    co_return std::make_shared<const nostr::NegSet>(std::move(items));
  }
  Task<outbox::FillEvents> events(std::string, std::vector<nostr::EventId>) override {
    outbox::FillEvents found;
    found.events.push_back(open);
    found.events.push_back(guarded);
    co_return found;
  }
  Task<std::vector<outbox::TakenEvent>> sent_since(SystemTime, std::size_t) override {
    co_return std::vector<outbox::TakenEvent>();
  }

  outbox::TakenEvent open = event_with({});
  outbox::TakenEvent guarded = event_with({{"-"}});
  bool too_many = false;
};

class FillServerTest : public testing::Test {
 protected:
  FillServerTest() { server.take_topics(HashSet<std::string>{kServedTopic}); }

  std::string ask(FillQuestion question, char from = 'a') {
    const auto node = NodeId::from_hex(std::string(64, from)).value();
    return test::run_task([&]() -> Task<std::string> {
      auto answer = co_await server.answer(store, node, std::move(question));
      co_return answer.value_or("nothing");
    });
  }
  std::string open(const std::string& topic = kServedTopic, char from = 'a') {
    const nostr::NegSet nothing;
    const nostr::NegClient client(nothing, {});
    return ask(OpenQuestion{{topic, {}, {}}, client.open()}, from);
  }
  static std::string text(Reason reason) { return std::string(nostr::text_of(reason)); }

  metrics::Registry registry;
  TurnedClock clock;
  FillServer server{clock, true, registry};
  std::shared_ptr<SmallStore> store = std::make_shared<SmallStore>();
};

TEST_F(FillServerTest, GivesWhatGossipWouldHaveSentAndNothingElse) {
  EXPECT_THAT(open(), HasSubstr("NEG-MSG"));
  const auto given = ask(EventsQuestion{kServedTopic, {store->open.event->id(), store->guarded.event->id()}});
  EXPECT_THAT(given, HasSubstr(store->open.event->id().hex()));
  EXPECT_THAT(given, Not(HasSubstr(store->guarded.event->id().hex())));
}

TEST_F(FillServerTest, SaysNothingOfTopicsThatTheNodeDoesNotTake) {
  EXPECT_THAT(open("kukuri:user:x"), HasSubstr(text(Reason::topic_not_enabled)));
  EXPECT_THAT(ask(EventsQuestion{"kukuri:user:x", {store->open.event->id()}}),
              HasSubstr(text(Reason::topic_not_enabled)));
}

TEST_F(FillServerTest, ANodeHasOneSetAndOnlyThatOne) {
  const NextQuestion next{"\x61"};
  EXPECT_THAT(ask(next), HasSubstr(text(Reason::neg_not_open)));
  open();
  open();
  EXPECT_EQ(server.sets(), 1U);
  EXPECT_THAT(ask(next), HasSubstr("NEG-MSG"));
  EXPECT_THAT(ask(next, 'b'), HasSubstr(text(Reason::neg_not_open)));
}

TEST_F(FillServerTest, SetsOfSilentNodesGo) {
  open(kServedTopic, 'a');
  clock.at += FillServer::kSetIdleMax + 1s;
  open(kServedTopic, 'b');
  EXPECT_EQ(server.sets(), 1U);
}

TEST_F(FillServerTest, TooManyEventsAndGarbageAreRefused) {
  store->too_many = true;
  EXPECT_THAT(open(), HasSubstr(text(Reason::neg_too_many_events)));
  store->too_many = false;
  EXPECT_THAT(ask(OpenQuestion{{kServedTopic, {}, {}}, "\x01garbage"}),
              HasSubstr(text(Reason::neg_bad_message)));
}

TEST_F(FillServerTest, WhoAsksTooOftenIsRefusedAndOthersAreNot) {
  for (int i = 0; i < static_cast<int>(FillServer::kQuestionsPerSecond); ++i) open();
  EXPECT_THAT(open(), HasSubstr(text(Reason::rate_limited)));
  EXPECT_THAT(open(kServedTopic, 'b'), HasSubstr("NEG-MSG"));
}

}  // namespace
}  // namespace todoke::gossip

// Two relays on one database under a load of events that replace, delete and repeat each other: both end with
// what the rules say, and subscribers of both have seen it once and in order.
#include <algorithm>
#include <iostream>
#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "faults/publisher.hpp"
#include "faults/rig.hpp"
#include "faults/subscriber.hpp"
#include "relay/store_model.hpp"

namespace todoke::test {
namespace {

using relay::test::StoreModel;
using testing::IsEmpty;

constexpr std::size_t kPublishersOfTwo = 10;
constexpr std::size_t kEventsOfTwo = 200;
constexpr const char* kEverything = R"({"#t":["kukuri:global"],"limit":5000})";

using EventsById = std::map<std::string, std::shared_ptr<const nostr::Event>>;

// Events of few authors and keys, and requests that delete some of them.
class Pool {
 public:
  explicit Pool(std::mt19937& engine) : engine_(engine) {
    for (int i = 0; i < 3; ++i) keys_.push_back(nostr::SecretKey::generate());
    for (int i = 0; i < 400; ++i) add_version();
    for (int i = 0; i < 100; ++i) add_deletion();
    std::shuffle(events_.begin(), events_.end(), engine_);
  }

  [[nodiscard]] const Events& events() const { return events_; }
  [[nodiscard]] Events pick(std::size_t count) {
    Events some;
    for (std::size_t i = 0; i < count; ++i) some.push_back(events_[below(events_.size())]);
    return some;
  }

 private:
  std::size_t below(std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(engine_);
  }

  void add(const nostr::SecretKey& key, nostr::Kind kind, std::vector<std::vector<std::string>> tags) {
    tags.push_back({"t", "kukuri:global"});
    const auto time = start_ - static_cast<std::int64_t>(below(30));
    events_.push_back(note(key, std::to_string(events_.size()), std::move(tags), kind, time));
  }

  void add_version() {
    static constexpr nostr::Kind kKinds[] = {1, 0, 10002, 30023, 30023};
    const auto kind = kKinds[below(std::size(kKinds))];
    const auto& key = keys_[below(keys_.size())];
    if (kind == 30023) return add(key, kind, {{"d", std::to_string(below(4))}});
    add(key, kind, {});
  }

  void add_deletion() {
    const auto& target = events_[below(events_.size())];
    const auto& key = keys_[below(keys_.size())];  // often not the target's author
    const auto address = nostr::address_of(target);
    if (address && below(3) == 0) return add(key, nostr::kDeletion, {{"a", address->text()}});
    add(key, nostr::kDeletion, {{"e", target.id().hex()}});
  }

  std::mt19937& engine_;
  std::int64_t start_ = unix_now();
  std::vector<nostr::SecretKey> keys_;
  Events events_;
};

// The delivered events, in order, against what there was and what is left.
void check_delivery(const std::vector<std::string>& delivered, const std::set<std::string>& effective,
                    const EventsById& known) {
  std::map<std::string, int> times;
  std::map<std::string, const nostr::Event*> versions;  // the newest delivered one of each key
  std::vector<const nostr::Event*> deletions;
  for (const auto& id : delivered) {
    ++times[id];
    ASSERT_TRUE(known.contains(id)) << "a stranger: " << id;
    const auto& event = *known.at(id);
    const auto incoming = relay::test::incoming_of(known.at(id));
    if (!incoming.effective_key.empty()) {
      auto& newest = versions[incoming.effective_key];
      const bool is_late =
          newest != nullptr && (newest->created_at() > event.created_at() ||
                                (newest->created_at() == event.created_at() && newest->id() < event.id()));
      EXPECT_FALSE(is_late) << "after its successor: " << event.json();
      newest = &event;
    }
    for (const auto* deletion : deletions) {
      const auto targets = nostr::deletion_targets(*deletion);
      const bool named =
          std::find(targets.events.begin(), targets.events.end(), event.id()) != targets.events.end();
      EXPECT_FALSE(named && deletion->pubkey() == event.pubkey() && event.kind() != nostr::kDeletion)
          << "after its deletion: " << event.json();
    }
    if (event.kind() == nostr::kDeletion) deletions.push_back(&event);
  }
  for (const auto& [id, count] : times) EXPECT_EQ(count, 1) << "delivered again: " << id;
  for (const auto& id : effective) EXPECT_EQ(times[id], 1) << "in effect, and not delivered: " << id;
}

struct TwoRelays : testing::Test {
  std::random_device::result_type seed = std::random_device()();
  std::mt19937 engine{seed};
  TempFolder folders[2];
  RelayProcess first{folders[0].path()};
  RelayProcess second{folders[1].path(), {}, {"DATABASE_URL=" + conninfo_of(folders[0].path())}};
  SqlSession database{conninfo_of(folders[0].path())};

  // What the rules make of the events in the order of the log.
  std::set<std::string> effective_by_model(const EventsById& known) {
    StoreModel model;
    for (const auto& id : database.run("SELECT event_id FROM cn_relay.events ORDER BY ingested_seq")) {
      EXPECT_EQ(model.take_one(relay::test::incoming_of(known.at(id))), relay::Outcome::stored)
          << "stored against the rules: " << known.at(id)->json();
    }
    std::set<std::string> effective;
    for (const auto& [id, state] : model.state().events) {
      if (state == "in effect") effective.insert(id.hex());
    }
    return effective;
  }
};

TEST_F(TwoRelays, EndWithTheSameViewAndHaveDeliveredItOnceAndInOrder) {
  std::cout << "seed " << seed << "\n";
  Pool pool(engine);
  EventsById known;
  for (const auto& event : pool.events())
    known[event.id().hex()] = std::make_shared<const nostr::Event>(event);
  std::vector<std::unique_ptr<LiveSubscriber>> subscribers;
  const auto subscribe = [&](const char* filter) {
    for (auto* relay : {&first, &second}) {
      subscribers.push_back(std::make_unique<LiveSubscriber>(relay->url(), filter));
    }
  };
  subscribe(kOnlyLive);
  subscribe(kEverything);

  std::vector<std::unique_ptr<Publisher>> publishers;
  for (std::size_t i = 0; i < kPublishersOfTwo; ++i) {
    const auto address = i % 2 == 0 ? first.public_address() : second.public_address();
    publishers.push_back(std::make_unique<Publisher>(address, pool.pick(kEventsOfTwo), 20));
  }
  wait_until("half of the answers", [&] {
    std::size_t answered = 0;
    for (const auto& publisher : publishers) answered += publisher->answered();
    return answered >= kPublishersOfTwo * kEventsOfTwo / 2;
  });
  subscribe(kEverything);  // in the middle of it

  std::map<std::string, int> stored;  // how often an OK said so: true, with an empty text
  for (const auto& publisher : publishers) {
    std::map<std::string, std::size_t> answered;
    for (const auto& [id, oks] : publisher->finish()) {
      answered[id] = oks.size();
      for (const auto& ok : oks) {
        if (ok.accepted && ok.text.empty()) ++stored[id];
      }
    }
    EXPECT_EQ(answered, publisher->sent()) << "every EVENT gets one OK";
  }
  // The last row of the log: who has it has everything.
  const auto last = make_notes(1).front();
  known[last.id().hex()] = std::make_shared<const nostr::Event>(last);
  ASSERT_TRUE(NostrClient(second.url()).publish(last).accepted);
  ++stored[last.id().hex()];
  for (const auto& subscriber : subscribers) subscriber->wait_for(last.id().hex());

  std::set<std::string> accepted;
  for (const auto& [id, times] : stored) {
    EXPECT_EQ(times, 1) << "stored twice: " << id;
    accepted.insert(id);
  }
  EXPECT_EQ(stored_ids(database), accepted);
  EXPECT_EQ(problems_in_store(database), "");
  const auto effective = effective_by_model(known);
  EXPECT_LT(effective.size(), accepted.size());

  std::vector<std::string> in_order(effective.begin(), effective.end());
  std::sort(in_order.begin(), in_order.end(), [&](const auto& a, const auto& b) {
    const auto time_a = known.at(a)->created_at();
    const auto time_b = known.at(b)->created_at();
    return time_a != time_b ? time_a > time_b : a < b;
  });
  auto in_the_log = database.run("SELECT event_id FROM cn_relay.events ORDER BY ingested_seq");
  std::erase_if(in_the_log, [&](const auto& id) { return !effective.contains(id); });
  for (auto* relay : {&first, &second}) {
    NostrClient client(relay->url());
    EXPECT_EQ(client.request("recent", kEverything).ids, in_order);
    // A question that is never answered from memory.
    EXPECT_EQ(client.request("log", R"({"#t":["kukuri:global"],"seq_after":0,"limit":5000})").ids,
              in_the_log);
  }
  for (const auto& subscriber : subscribers) check_delivery(subscriber->ids(), effective, known);
}

}  // namespace
}  // namespace todoke::test

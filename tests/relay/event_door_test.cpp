// What other rooms of the process publish and read through the relay (outbox/event_port.hpp).
#include <future>

#include "harness/run_task.hpp"
#include "support.hpp"

namespace todoke::test {
namespace {

using outbox::From;
using outbox::Published;
using testing::Optional;

class EventDoorTest : public TopicsTest {
 protected:
  Published publish_json(std::string json, From from = From::api,
                         std::optional<nostr::Pubkey> proven = std::nullopt,
                         std::chrono::milliseconds time = std::chrono::seconds(20)) {
    return run_task([&] { return rig.events().publish(json, from, proven, Deadline::after(time)); });
  }
  Published publish(const Event& event, From from = From::api,
                    std::optional<nostr::Pubkey> proven = std::nullopt) {
    return publish_json(std::string(event.json()), from, proven);
  }
  std::vector<std::optional<std::string>> read(std::vector<std::string> ids) {
    return run_task([&] { return rig.events().read(ids, Deadline::after(std::chrono::seconds(20))); });
  }
};

TEST_F(EventDoorTest, APublishedEventIsCommittedDeliveredAndLoggedWithItsSource) {
  client.request("live", kGlobal);
  const auto of_api = global_note(alice, "by the API");
  const auto of_node = global_note(bob, "by the node");
  EXPECT_EQ(publish(of_api).kind, Published::Kind::stored);
  EXPECT_EQ(rig.value("SELECT source FROM cn_relay.events WHERE event_id = '" + hex_of(of_api) + "'"), "api");
  EXPECT_EQ(client.live("live"), of_api.json());
  EXPECT_EQ(publish(of_node, From::node).kind, Published::Kind::stored);
  EXPECT_EQ(rig.value("SELECT source FROM cn_relay.events WHERE event_id = '" + hex_of(of_node) + "'"),
            "node");
  EXPECT_EQ(client.live("live"), of_node.json());
  EXPECT_THAT(log_of(of_node), ElementsAre("upsert|kukuri:global|"));
}

TEST_F(EventDoorTest, WhatIsThereAlreadyIsADuplicate) {
  const auto event = global_note(alice, "once");
  store(event);
  const auto again = publish(event);
  EXPECT_EQ(again.kind, Published::Kind::duplicate);
  EXPECT_EQ(again.message, "duplicate: already stored");
}

TEST_F(EventDoorTest, WhatBreaksARuleIsRefusedInTheWordsOfAnOk) {
  const auto event = global_note(alice, "signed");
  auto forged = std::string(event.json());
  forged.replace(forged.find(event.sig().hex()), 8, "00000000");
  const auto refused = publish_json(forged);
  EXPECT_EQ(refused.kind, Published::Kind::refused);
  EXPECT_EQ(refused.message, "invalid: bad signature");
  EXPECT_EQ(publish_json("{}").message, "invalid: missing event member");
  EXPECT_EQ(publish(note(alice, "", {})).message, "invalid: missing topic");
  const auto newer = global_note(alice, "newer", {{"d", "x"}}, 30'000, unix_now());
  EXPECT_EQ(publish(newer).kind, Published::Kind::stored);
  const auto older = publish(global_note(alice, "older", {{"d", "x"}}, 30'000, unix_now() - 10));
  EXPECT_EQ(older.kind, Published::Kind::refused);
  EXPECT_EQ(older.message, "duplicate: newer version stored");
}

TEST_F(EventDoorTest, EphemeralEventsAreRefused) {
  EXPECT_EQ(publish(global_note(alice, "", {}, 20'001)).kind, Published::Kind::refused);
}

TEST_F(EventDoorTest, AProtectedEventNeedsItsAuthorsProofUnlessTheNodeBringsIt) {
  const auto event = global_note(alice, "protected", {{"-"}});
  EXPECT_EQ(publish(event).message, "auth-required: protected event");
  EXPECT_EQ(publish(event, From::api, bob.pubkey()).message, "restricted: protected event of another author");
  EXPECT_EQ(publish(event, From::api, alice.pubkey()).kind, Published::Kind::stored);
  EXPECT_EQ(publish(global_note(alice, "of the node", {{"-"}}), From::node).kind, Published::Kind::stored);
}

TEST_F(EventDoorTest, ANodeThatIsFullSaysNotNowAndKnowsWhatItHas) {
  const auto stored = global_note(alice, "before");
  store(stored);
  rig.leave_free(0);
  ASSERT_TRUE(rig.await_metric("todoke_storage_full", 1));
  const auto refused = publish(global_note(alice, "after"));
  EXPECT_EQ(refused.kind, Published::Kind::not_now);
  EXPECT_EQ(refused.message, "error: storage full");
  EXPECT_EQ(publish(stored).kind, Published::Kind::duplicate);
}

TEST(EventDoorDeadlineTest, WhatIsNotCommittedInTimeIsNotNow) {
  RelayRig rig(NodeRigOptions{.roles = {}, .flags = {}, .behind_proxy = true});
  rig.proxy().set_reachable(false);
  rig.proxy().cut();
  const auto event = global_note(SecretKey::generate(), "waits");
  const auto late = run_task([&] {
    return rig.events().publish(std::string(event.json()), From::api, std::nullopt,
                                Deadline::after(std::chrono::milliseconds(50)));
  });
  rig.proxy().set_reachable(true);
  EXPECT_EQ(late.kind, Published::Kind::not_now);
  EXPECT_EQ(late.message, "error: not stored, try again");
}

TEST_F(EventDoorTest, ReadGivesWhatIsInEffectAndPublicInTheOrderOfTheIds) {
  const auto first = global_note(alice, "first");
  const auto second = global_note(alice, "second");
  const auto deleted = global_note(alice, "deleted");
  const auto secret = global_note(alice, "secret", {{"scope", "friend"}, {"epoch", "1"}});
  const auto message = global_note(alice, "for bob", {{"p", hex_of(bob)}}, 4);
  for (const auto& event : {first, second, deleted}) store(event);
  EXPECT_EQ(publish(secret, From::api, alice.pubkey()).kind, Published::Kind::stored);
  EXPECT_EQ(publish(message, From::api, alice.pubkey()).kind, Published::Kind::stored);
  store(deletion_of(alice, {{"e", hex_of(deleted)}}));
  const auto found = read({hex_of(second), hex_of(secret), "no id", hex_of(deleted), hex_of(message),
                           hex_of(first), hex_of(second)});
  ASSERT_EQ(found.size(), 7U);
  EXPECT_THAT(found[0], Optional(std::string(second.json())));
  for (const auto none : {1U, 2U, 3U, 4U}) EXPECT_EQ(found[none], std::nullopt) << none;
  EXPECT_THAT(found[5], Optional(std::string(first.json())));
  EXPECT_THAT(found[6], Optional(std::string(second.json())));
  EXPECT_THAT(read({}), IsEmpty());
}

TEST_F(EventDoorTest, ManyPublishAtOnceFromOtherLoops) {
  std::vector<std::future<Published>> answers;
  for (int i = 0; i < 8; ++i) {
    answers.push_back(std::async(std::launch::async, [this, i] {
      return publish(global_note(SecretKey::generate(), "note " + std::to_string(i)));
    }));
  }
  for (auto& answer : answers) EXPECT_EQ(answer.get().kind, Published::Kind::stored);
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.events"), "8");
}

}  // namespace
}  // namespace todoke::test

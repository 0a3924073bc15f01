// A disk without room, at the level of the wire: the free space of the rig is the test's, and a trigger
// refuses as a server does whose disk is full. tests/faults/disk_full_test.cpp fills a real one.
#include <fmt/format.h>

#include "support.hpp"

namespace todoke::test {
namespace {

constexpr std::uint64_t kMebibyte = 1024 * 1024;
constexpr const char* kFull = "error: storage full";
constexpr const char* kFullMetric = "todoke_storage_full";
const Flags kThousand = {{"capacity.min_free_bytes", "1000MiB"}};

class StorageRoomTest : public testing::Test {
 protected:
  void leave(std::uint64_t mebibytes) {
    rig.leave_free(mebibytes * kMebibyte);
    ASSERT_TRUE(rig.await_metric(R"(todoke_storage_free_bytes{folder="data"})",
                                 static_cast<double>(mebibytes * kMebibyte)));
  }

  RelayRig rig{kThousand};
  NostrClient client{rig.url()};
  SecretKey alice = SecretKey::generate();
};

TEST_F(StorageRoomTest, BelowTheLeastNothingIsStoredAndReadsGoOn) {
  const auto before = global_note(alice, "before");
  store_at(client, before);
  leave(1'000);
  store_at(client, global_note(alice, "just enough"));
  leave(999);
  ASSERT_TRUE(rig.await_metric(kFullMetric, 1));
  const auto refused = global_note(alice, "refused");
  const auto answer = client.publish(refused);
  EXPECT_FALSE(answer.accepted);
  EXPECT_EQ(answer.text, kFull);
  EXPECT_EQ(rig.metric(R"(todoke_ingest_rejected_total{reason="storage_full"})"), 1);
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.event_dedupe"), "2");
  EXPECT_THAT(client.stored(by_id(before)).ids, ElementsAre(hex_of(before)));
  EXPECT_EQ(client.publish(before).text, "duplicate: already stored");
  EXPECT_EQ(client.publish(global_note(alice, "", {}, 20001)).text, "") << "an ephemeral event is not stored";
}

TEST_F(StorageRoomTest, ADuplicateThatMemoryDoesNotKnowIsOneAlsoWithoutRoom) {
  const auto before = global_note(alice, "before");
  store_at(client, before);
  rig.stop();
  rig.start();
  NostrClient again(rig.url());
  leave(10);
  ASSERT_TRUE(rig.await_metric(kFullMetric, 1));
  const auto answer = again.publish(before);
  EXPECT_TRUE(answer.accepted);
  EXPECT_EQ(answer.text, "duplicate: already stored");
  EXPECT_EQ(again.publish(global_note(alice, "new")).text, kFull);
}

TEST_F(StorageRoomTest, EventsAreTakenAgainOnlyWhenAQuarterMoreIsFree) {
  leave(10);
  ASSERT_TRUE(rig.await_metric(kFullMetric, 1));
  leave(1'249);
  const auto event = global_note(alice, "sent again and again");
  EXPECT_EQ(client.publish(event).text, kFull);
  leave(1'250);
  ASSERT_TRUE(rig.await_metric(kFullMetric, 0));
  store_at(client, event);
}

TEST_F(StorageRoomTest, TheLeastMayChangeWhileTheNodeRuns) {
  RelayRig other;
  NostrClient there(other.url());
  other.leave_free(2'000 * kMebibyte);
  store_at(there, global_note(alice, "1"));
  other.change({{"capacity.min_free_bytes", "3000MiB"}});
  ASSERT_TRUE(other.await_metric(kFullMetric, 1));
  EXPECT_EQ(there.publish(global_note(alice, "2")).text, kFull);
}

TEST_F(StorageRoomTest, ADatabaseThatRefusesForWantOfRoomIsAskedAgainUntilItTakesSomething) {
  const auto before = global_note(alice, "before");
  store_at(client, before);
  rig.sql(R"(CREATE FUNCTION pg_temp_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$;
             CREATE TRIGGER refuse BEFORE INSERT ON cn_relay.event_dedupe
             FOR EACH STATEMENT EXECUTE FUNCTION pg_temp_refuse())");
  const auto event = global_note(alice, "refused");
  EXPECT_EQ(client.publish(event).text, kFull);
  ASSERT_TRUE(rig.await_metric(kFullMetric, 1));
  EXPECT_EQ(client.publish(event).text, kFull);
  EXPECT_EQ(rig.metric("todoke_ingest_retries_total"), 1) << "it is not tried";
  EXPECT_THAT(client.stored(by_id(before)).ids, ElementsAre(hex_of(before)));

  rig.sql("DROP TRIGGER refuse ON cn_relay.event_dedupe");
  rig.clock().shift_steady(std::chrono::seconds(10));
  ASSERT_TRUE(rig.await_metric(kFullMetric, 0));
  store_at(client, event);
}

TEST_F(StorageRoomTest, ANodeThatIsFullSaysSoAndDeliversWhatItHas) {
  const auto before = global_note(alice, "before");
  store_at(client, before);
  rig.change({{"capacity.max_events", "1"}, {"capacity.keep_days", "30"}});
  ASSERT_TRUE(rig.await_metric("todoke_capacity_node_full", 1));
  EXPECT_EQ(client.publish(global_note(alice, "refused")).text, "restricted: capacity");
  EXPECT_THAT(client.stored(by_id(before)).ids, ElementsAre(hex_of(before)));
  rig.change({{"capacity.max_events", "0"}});
  ASSERT_TRUE(rig.await_metric("todoke_capacity_node_full", 0));
  store_at(client, global_note(alice, "taken"));
}

TEST_F(StorageRoomTest, PressureByCapacityDoesNotMakeEventsDearer) {
  RelayRig limited(Flags{{"limits.rates", "on"}, {"limits.events_per_minute", "8"}});
  NostrClient there(limited.url());
  limited.press(3, outbox::PressureInput::capacity);
  for (int i = 0; i < 8; ++i) store_at(there, global_note(alice, std::to_string(i)));
}

}  // namespace
}  // namespace todoke::test

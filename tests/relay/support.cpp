#include "support.hpp"

#include <fmt/format.h>

namespace todoke::test {

std::string topic(char digit) {
  return "kukuri:" + std::string(64, digit);
}

void enable_topic(RelayRig& rig, const std::string& topic_id, std::string_view policy) {
  rig.sql(fmt::format(
      "INSERT INTO cn_relay.node_subscriptions (topic_id, ref_count, ingest_policy) VALUES ('{}', 1, '{}')",
      topic_id, policy));
  NostrClient client(rig.url());
  const auto known = await(
      [&] { return client.stored(fmt::format(R"({{"#t":["{}"],"limit":0}})", topic_id)).closed.empty(); });
  ASSERT_TRUE(known) << "the relay does not notice " << topic_id;
}

void subscribe(const RelayRig& rig, const SecretKey& key, std::string_view topic_id,
               std::string_view services) {
  rig.sql(
      fmt::format("INSERT INTO cn_user.topic_subscriptions (topic_id, subscriber_pubkey, services) "
                  "VALUES ('{}', '{}', '{}') ON CONFLICT (subscriber_pubkey, topic_id) DO UPDATE SET "
                  "status = 'active', ended_at = NULL",
                  topic_id, hex_of(key), services));
}

std::string hex_of(const Event& event) {
  return event.id().hex();
}

std::string hex_of(const SecretKey& key) {
  return key.pubkey().hex();
}

Ids hexes_of(const std::vector<Event>& events) {
  Ids ids;
  for (const auto& event : events) ids.push_back(hex_of(event));
  return ids;
}

std::string global_and(std::string_view more) {
  return fmt::format(R"({{"#t":["kukuri:global"],{}}})", more);
}

std::string by_id(const Event& event) {
  return global_and(fmt::format(R"("ids":["{}"])", hex_of(event)));
}

Tags with_global(Tags tags) {
  tags.push_back({"t", "kukuri:global"});
  return tags;
}

Event global_note(const SecretKey& key, std::string content, Tags tags, nostr::Kind kind,
                  std::optional<std::int64_t> created_at) {
  return note(key, std::move(content), with_global(std::move(tags)), kind, created_at);
}

Event deletion_of(const SecretKey& key, Tags targets, std::optional<std::int64_t> created_at) {
  return global_note(key, "", std::move(targets), nostr::kDeletion, created_at);
}

std::string TopicsTest::refusal_of_json(const std::string& json) {
  const auto ok = client.publish_json(json);
  EXPECT_EQ(ok.id, id_in(json));
  return ok.accepted ? "accepted: " + ok.text : ok.text;
}

void store_at(NostrClient& client, const Event& event) {
  const auto ok = client.publish(event);
  EXPECT_EQ(ok.id, hex_of(event));
  EXPECT_TRUE(ok.accepted) << ok.text;
  EXPECT_EQ(ok.text, "");
}

void TopicsTest::store(const Event& event) {
  store_at(client, event);
}

Rows TopicsTest::log_of(const Event& event) const {
  return rig.sql(
      fmt::format("SELECT op, topic_id, reason FROM cn_relay.events_outbox WHERE event_id = '{}' "
                  "ORDER BY seq",
                  hex_of(event)));
}

}  // namespace todoke::test

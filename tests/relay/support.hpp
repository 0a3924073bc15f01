// Short forms that the tests of the relay share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/nostr_client.hpp"
#include "rig.hpp"

namespace todoke::test {

using nostr::Event;
using nostr::SecretKey;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

using Tags = std::vector<std::vector<std::string>>;
using Ids = std::vector<std::string>;

inline const Flags kOpen = {{"relay.topic_policy", "open"}};
inline const Flags kOpenTables = {{"relay.topic_policy", "open"}, {"relay.cache_bytes", "0"}};

// What most tests of the policy `topics` ask for.
inline constexpr const char* kGlobal = R"({"#t":["kukuri:global"]})";
inline constexpr std::int64_t kTime = 1'700'000'000;

// For a client that gets events of up to 1 MiB.
inline net::WsClientOptions large_messages() {
  net::WsClientOptions options;
  options.ws.message_bytes_max = 4 * 1024 * 1024;
  options.ws.queue_bytes_max = 8 * 1024 * 1024;
  options.inbox_bytes_max = 4 * 1024 * 1024;
  return options;
}

// A topic id that nobody has enabled yet: kukuri: and 64 times the digit.
std::string topic(char digit);
// Enables a topic and waits until the relay knows: a REQ for it is answered.
void enable_topic(RelayRig& rig, const std::string& topic_id, std::string_view policy = "{}");

// Gives a key an active subscription to a topic, as an approved request does. Rights that a relay has read
// are read again a moment later.
void subscribe(const RelayRig& rig, const SecretKey& key, std::string_view topic_id = "kukuri:global",
               std::string_view services = "{index}");

std::string hex_of(const Event& event);
std::string hex_of(const SecretKey& key);
Ids hexes_of(const std::vector<Event>& events);

// {"#t":["kukuri:global"],<more>}
std::string global_and(std::string_view more);
// {"ids":[…],"#t":["kukuri:global"]}
std::string by_id(const Event& event);

// `tags` and ["t","kukuri:global"].
Tags with_global(Tags tags);
Event global_note(const SecretKey& key, std::string content, Tags tags = {}, nostr::Kind kind = 1,
                  std::optional<std::int64_t> created_at = {});
Event deletion_of(const SecretKey& key, Tags targets, std::optional<std::int64_t> created_at = {});

// Two relays of one database, with a client at each.
class TwoRelaysTest : public testing::Test {
 protected:
  DatabasePtr database = std::make_shared<TestDatabase>();
  RelayRig a{NodeRigOptions{.roles = {}, .flags = {}, .database = database}};
  RelayRig b{NodeRigOptions{.roles = {}, .flags = {}, .database = database}};
  NostrClient at_a{a.url()};
  NostrClient at_b{b.url()};
  SecretKey alice = SecretKey::generate();
};

// One relay with the policy `topics`.
class TopicsTest : public testing::Test {
 protected:
  // The text of the OK false that the event gets; says so when it gets OK true.
  std::string refusal_of(const Event& event) { return refusal_of_json(std::string(event.json())); }
  std::string refusal_of_json(const std::string& json);
  void store(const Event& event);
  // The rows of the log for an event: op|topic|reason.
  Rows log_of(const Event& event) const;

  RelayRig rig;
  NostrClient client{rig.url()};
  SecretKey alice = SecretKey::generate();
  SecretKey bob = SecretKey::generate();
};

// Stores an event; fails the test when the answer is not exactly ["OK",<id>,true,""].
void store_at(NostrClient& client, const Event& event);

}  // namespace todoke::test

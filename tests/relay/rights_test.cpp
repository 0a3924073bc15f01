// What people may do while auth.mode is required: consent, subscriptions, searches, disabled accounts.
#include <array>
#include <atomic>
#include <thread>

#include <fmt/format.h>

#include "support.hpp"

namespace todoke::test {
namespace {

constexpr auto* kConsent = "restricted: consent-required";
constexpr auto* kSubscription = "restricted: subscription-required";
constexpr auto* kDisabled = "restricted: account disabled";

class RightsTest : public testing::Test {
 protected:
  // The policies of the type become current at once.
  void make_current(const std::string& type, const std::string& version) const {
    rig.sql(
        fmt::format("INSERT INTO cn_admin.policies (type, version, title, content, status, published_at) "
                    "VALUES ('{0}', '{1}', 'Policy', 'Text', 'published', now());"
                    "INSERT INTO cn_admin.current_policies (type, version) VALUES ('{0}', '{1}') "
                    "ON CONFLICT (type) DO UPDATE SET version = '{1}'",
                    type, version));
  }
  void consent(const SecretKey& key, const std::string& type, const std::string& version) const {
    rig.sql(
        fmt::format("INSERT INTO cn_user.policy_consents (pubkey, type, version) VALUES ('{}', '{}', '{}')",
                    hex_of(key), type, version));
  }
  void set_status(const SecretKey& key, const std::string& status) const {
    rig.sql(
        fmt::format("INSERT INTO cn_user.accounts (pubkey, status) VALUES ('{0}', '{1}') "
                    "ON CONFLICT (pubkey) DO UPDATE SET status = '{1}'",
                    hex_of(key), status));
  }
  void end_subscription(const SecretKey& key, const std::string& status) const {
    rig.sql(
        fmt::format("UPDATE cn_user.topic_subscriptions SET status = '{}', ended_at = {} "
                    "WHERE subscriber_pubkey = '{}'",
                    status, status == "ended" ? "now()" : "NULL", hex_of(key)));
  }
  // What the refusal becomes when the relay has heard of a change.
  static bool await_closed(NostrClient& client, const std::string& filter, const std::string& closed) {
    return await([&] { return client.stored(filter).closed == closed; });
  }
  static std::string neg_open(NostrClient& client, const std::string& filter) {
    client.send(fmt::format(R"(["NEG-OPEN","n",{},"6100000200"])", filter));
    return client.receive(R"(["NEG-)");
  }
  // A client that has proven a key.
  class Member : public NostrClient {
   public:
    Member(const std::string& url, const SecretKey& key) : NostrClient(url) {
      EXPECT_TRUE(authenticate(key).accepted);
    }
  };
  [[nodiscard]] Member member() const { return Member(rig.url(), alice); }

  RelayRig rig{
      Flags{{"auth.mode", "required"}, {"auth.ws_auth_timeout_seconds", "1h"}, {"relay.search", "on"}}};
  SecretKey alice = SecretKey::generate();
  SecretKey bob = SecretKey::generate();
};

TEST_F(RightsTest, NothingOfATopicIsTakenOrServedWithoutASubscription) {
  auto client = member();
  const auto event = global_note(alice, "hello");
  EXPECT_EQ(client.publish(event).text, kSubscription);
  EXPECT_EQ(client.stored(kGlobal).closed, kSubscription);
  EXPECT_EQ(client.count("c", kGlobal), fmt::format(R"(["CLOSED","c","{}"])", kSubscription));
  EXPECT_EQ(neg_open(client, kGlobal), fmt::format(R"(["NEG-ERR","n","{}"])", kSubscription));
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.events"), "0");
  subscribe(rig, alice);
  EXPECT_TRUE(await_closed(client, kGlobal, ""));
  store_at(client, event);
  EXPECT_EQ(client.count("c", kGlobal), R"(["COUNT","c",{"count":1}])");
  EXPECT_THAT(neg_open(client, kGlobal), StartsWith(R"(["NEG-MSG","n",)"));
}

TEST_F(RightsTest, ASubscriptionOpensItsTopicAlone) {
  rig.sql(fmt::format("INSERT INTO cn_relay.node_subscriptions (topic_id, ref_count) VALUES ('{}', 1)",
                      topic('a')));
  subscribe(rig, alice);
  auto client = member();
  const auto other = fmt::format(R"({{"#t":["{}"]}})", topic('a'));
  // The relay knows the topic when it no longer says that it does not carry it.
  EXPECT_TRUE(await_closed(client, other, kSubscription));
  EXPECT_EQ(client.stored(fmt::format(R"({},{})", kGlobal, other)).closed, kSubscription);
  EXPECT_EQ(client.publish(note(alice, "", {{"t", topic('a')}})).text, kSubscription);
  // An event of both is taken for the one.
  const auto both = note(alice, "", {{"t", topic('a')}, {"t", "kukuri:global"}});
  store_at(client, both);
  EXPECT_EQ(rig.value("SELECT string_agg(topic_id, ',') FROM cn_relay.events_outbox"), "kukuri:global");
}

TEST_F(RightsTest, WhatIsThereAlreadyIsToldToSubscribersOnly) {
  subscribe(rig, bob);
  const auto event = global_note(bob, "stored");
  NostrClient other(rig.url());
  EXPECT_TRUE(other.authenticate(bob).accepted);
  store_at(other, event);
  EXPECT_EQ(member().publish(event).text, kSubscription);
}

TEST_F(RightsTest, CurrentPoliciesMustBeAgreedTo) {
  subscribe(rig, alice);
  auto client = member();
  const auto event = global_note(alice, "");
  EXPECT_EQ(client.stored(kGlobal).closed, "");
  make_current("terms", "1");
  EXPECT_TRUE(await_closed(client, kGlobal, kConsent));
  EXPECT_EQ(client.publish(event).text, kConsent);
  EXPECT_EQ(client.count("c", kGlobal), fmt::format(R"(["CLOSED","c","{}"])", kConsent));
  EXPECT_EQ(neg_open(client, kGlobal), fmt::format(R"(["NEG-ERR","n","{}"])", kConsent));
  consent(alice, "terms", "1");
  EXPECT_TRUE(await_closed(client, kGlobal, ""));
  store_at(client, event);
  // A new version asks everybody again.
  make_current("terms", "2");
  EXPECT_TRUE(await_closed(client, kGlobal, kConsent));
}

TEST_F(RightsTest, APersonMayVanishWithoutConsentAndSubscription) {
  make_current("privacy", "1");
  auto client = member();
  EXPECT_EQ(client.stored(kGlobal).closed, kConsent);
  store_at(client, nostr::sign_event({unix_now(), nostr::kVanish, {{"relay", "ALL_RELAYS"}}, ""}, alice));
}

TEST_F(RightsTest, AnAuthorWhoIsProvenIsJudgedAlone) {
  subscribe(rig, alice);
  auto client = member();
  EXPECT_TRUE(client.authenticate(bob).accepted);
  EXPECT_EQ(client.publish(global_note(bob, "")).text, kSubscription);
  store_at(client, global_note(alice, ""));
  // What somebody else has written is brought by whoever may.
  store_at(client, global_note(SecretKey::generate(), ""));
}

TEST_F(RightsTest, WhatIsOpenIsClosedWhenTheSubscriptionEnds) {
  subscribe(rig, alice);
  subscribe(rig, bob);
  for (const auto* status : {"paused", "ended"}) {
    auto client = member();
    // What was subscribed a moment ago the relay may still have to hear.
    EXPECT_TRUE(await([&] { return client.request("live", kGlobal).closed.empty(); }));
    EXPECT_THAT(neg_open(client, kGlobal), StartsWith(R"(["NEG-MSG","n",)"));
    end_subscription(alice, status);
    EXPECT_EQ(client.receive(R"(["CLOSED")"), fmt::format(R"(["CLOSED","live","{}"])", kSubscription));
    EXPECT_EQ(client.receive(R"(["NEG-ERR")"), fmt::format(R"(["NEG-ERR","n","{}"])", kSubscription));
    NostrClient other(rig.url());
    EXPECT_TRUE(other.authenticate(bob).accepted);
    store_at(other, global_note(bob, status));
    EXPECT_THAT(client.drain(), IsEmpty());
    subscribe(rig, alice);
  }
}

TEST_F(RightsTest, ADisabledAccountsConnectionsEndAtOnce) {
  subscribe(rig, alice);
  auto idle = member();
  auto asking = member();
  EXPECT_EQ(asking.request("live", kGlobal).closed, "");
  EXPECT_EQ(idle.stored(kGlobal).closed, "");
  set_status(alice, "disabled");
  for (auto* client : {&idle, &asking}) {
    EXPECT_EQ(client->receive(R"(["NOTICE")"), fmt::format(R"(["NOTICE","{}"])", kDisabled));
    while (client->receive_or_end()) continue;
    EXPECT_EQ(client->close_code(), 1008);
  }
  // And the next one, with its login.
  NostrClient again(rig.url());
  EXPECT_TRUE(again.authenticate(alice).accepted);
  EXPECT_EQ(again.receive(R"(["NOTICE")"), fmt::format(R"(["NOTICE","{}"])", kDisabled));
  EXPECT_EQ(again.receive_or_end(), std::nullopt);
  set_status(alice, "active");
  auto back = member();
  EXPECT_EQ(back.stored(kGlobal).closed, "");
}

TEST_F(RightsTest, AFilterForTheNodesOwnKeysNeedsConsentAlone) {
  rig.sql(
      fmt::format("INSERT INTO cn_bootstrap.keys (pubkey, algorithm) VALUES ('{}', 'node')", hex_of(bob)));
  ASSERT_TRUE(rig.await_metric("todoke_node_keys", 1));
  auto client = member();
  const auto own = fmt::format(R"({{"authors":["{}"]}})", hex_of(bob));
  EXPECT_EQ(client.stored(own).closed, "");
  make_current("terms", "1");
  EXPECT_TRUE(await_closed(client, own, kConsent));
}

TEST_F(RightsTest, WithoutADatabaseRightsThatAreNotKnownAreNoRights) {
  RelayRig cut(NodeRigOptions{.roles = {}, .flags = {{"auth.mode", "required"}}, .behind_proxy = true});
  subscribe(cut, alice);
  NostrClient client(cut.url());
  cut.proxy().set_reachable(false);
  cut.proxy().cut();
  EXPECT_TRUE(client.authenticate(alice).accepted);
  EXPECT_EQ(client.stored(kGlobal).closed, "error: query failed, try again");
  cut.proxy().set_reachable(true);
  EXPECT_TRUE(await_closed(client, kGlobal, ""));
}

class SearchRightsTest : public RightsTest {
 protected:
  SearchRightsTest() {
    rig.sql("UPDATE cn_user.plan_limits SET value = 2 WHERE metric = 'index.search_requests'");
  }
  static constexpr auto* kSearch = R"({"#t":["kukuri:global"],"search":"word"})";
};

TEST_F(SearchRightsTest, SearchesAreCountedAndEndWithThePlansLimit) {
  subscribe(rig, alice);
  auto client = member();
  EXPECT_EQ(client.stored(kSearch).closed, "");
  EXPECT_EQ(client.stored(kSearch).closed, "");
  EXPECT_EQ(client.stored(kSearch).closed, "restricted: no more searches today");
  EXPECT_EQ(client.stored(kGlobal).closed, "");
  EXPECT_EQ(rig.value(fmt::format("SELECT used FROM cn_user.usage_counters_daily WHERE pubkey = '{}' AND "
                                  "metric = 'index.search_requests'",
                                  hex_of(alice))),
            "2");
  // Another connection does not begin anew.
  EXPECT_EQ(member().stored(kSearch).closed, "restricted: no more searches today");
}

TEST_F(SearchRightsTest, ASearchNeedsASubscriptionThatOpensTheIndex) {
  subscribe(rig, alice, "kukuri:global", "{trust}");
  auto client = member();
  EXPECT_EQ(client.stored(kGlobal).closed, "");
  EXPECT_EQ(client.stored(kSearch).closed, kSubscription);
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_user.usage_counters_daily"), "0");
}

class RightsSwitchTest : public RightsTest {
 protected:
  static constexpr auto* kRequired = "required";
};

TEST_F(RightsSwitchTest, NothingIsAskedForWhileAuthenticationIsOff) {
  RelayRig open;
  open.sql(
      fmt::format("INSERT INTO cn_user.accounts (pubkey, status) VALUES ('{}', 'disabled')", hex_of(alice)));
  NostrClient client(open.url());
  EXPECT_TRUE(client.authenticate(alice).accepted);
  store_at(client, global_note(alice, ""));
  EXPECT_EQ(client.stored(kGlobal).closed, "");
}

TEST_F(RightsSwitchTest, OpenSubscriptionsOfOlderConnectionsEndWithTheGrace) {
  RelayRig live(Flags{{"auth.grace_seconds", "600"}, {"auth.ws_auth_timeout_seconds", "1h"}});
  NostrClient older(live.url());
  EXPECT_TRUE(older.authenticate(alice).accepted);
  EXPECT_EQ(older.request("live", kGlobal).closed, "");
  live.change({{"auth.mode", kRequired}});
  NostrClient newer(live.url());
  EXPECT_TRUE(newer.authenticate(alice).accepted);
  EXPECT_EQ(newer.stored(kGlobal).closed, kSubscription);
  // The older one keeps working, although its key has no subscription.
  const auto event = global_note(alice, "in the grace");
  store_at(older, event);
  EXPECT_EQ(older.live("live"), event.json());
  live.clock().shift(std::chrono::seconds(605));
  EXPECT_EQ(older.receive(R"(["CLOSED")"), fmt::format(R"(["CLOSED","live","{}"])", kSubscription));
  EXPECT_EQ(older.publish(global_note(alice, "after")).text, kSubscription);
  // Off, and on again.
  live.change({});
  EXPECT_EQ(older.request("live", kGlobal).closed, "");
  live.change({{"auth.mode", kRequired}});
  live.clock().shift(std::chrono::seconds(1'300));
  EXPECT_EQ(older.receive(R"(["CLOSED")"), fmt::format(R"(["CLOSED","live","{}"])", kSubscription));
}

// Clients of every kind send all the time, while authentication is switched on and the grace runs out.
TEST_F(RightsSwitchTest, UnderLoadNobodySlipsThrough) {
  constexpr int kClients = 4;
  RelayRig live(Flags{{"auth.grace_seconds", "600"}, {"auth.ws_auth_timeout_seconds", "1h"}});
  subscribe(live, alice);
  std::atomic<int> phase = 0;
  std::atomic<int> sent_in_grace = 0;
  const auto publish_all = [&](NostrClient& client, const SecretKey& key, const std::string& who) {
    for (int n = 0; phase < 3; ++n) {
      const int before = phase;
      const auto ok = client.publish(global_note(key, fmt::format("{} {} {}", who, before, n)));
      if (ok.accepted && before == 1) ++sent_in_grace;
    }
  };
  std::vector<std::thread> threads;
  const auto run = [&](std::string who, const SecretKey* proves, const SecretKey& writes) {
    threads.emplace_back([&, who = std::move(who), proves, writes] {
      try {
        NostrClient client(live.url());
        if (proves != nullptr) client.authenticate(*proves);
        publish_all(client, writes, who);
      } catch (const std::exception&) {
        // The relay has closed the connection.
      }
    });
  };
  for (int i = 0; i < kClients; ++i) {
    run("anonymous", nullptr, SecretKey::generate());
    run("stranger", &bob, bob);
    run("member", &alice, alice);
  }
  const auto count = [&](const std::string& like) {
    return std::stoi(live.value("SELECT count(*) FROM cn_relay.events WHERE content LIKE '" + like + "'"));
  };
  ASSERT_TRUE(await([&] { return count("anonymous 0 %") > 20 && count("stranger 0 %") > 20; }));
  live.change({{"auth.mode", kRequired}});
  phase = 1;
  // Those who connect from now on have no grace.
  for (int i = 0; i < kClients; ++i) {
    run("late anonymous", nullptr, SecretKey::generate());
    run("late stranger", &bob, bob);
    run("late member", &alice, alice);
  }
  ASSERT_TRUE(await([&] { return sent_in_grace > 50 && count("late member 1 %") > 20; }));
  live.clock().shift(std::chrono::seconds(605));
  phase = 2;
  ASSERT_TRUE(await([&] { return count("member 2 %") > 20 && count("late member 2 %") > 20; }));
  phase = 3;
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(count("late anonymous %"), 0);
  EXPECT_EQ(count("late stranger %"), 0);
  // What was begun in phase 2 was begun after the deadline.
  EXPECT_EQ(count("anonymous 2 %"), 0);
  EXPECT_EQ(count("stranger 2 %"), 0);
}

}  // namespace
}  // namespace todoke::test

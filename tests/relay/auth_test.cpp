// NIP-42, and what depends on who is asking: non-public scopes, protected events (NIP-70), auth.mode.
#include <fmt/format.h>

#include "support.hpp"

namespace todoke::test {
namespace {

class AuthTest : public TopicsTest {
 protected:
  // An answer to the client's challenge, with what is changed of it.
  struct Draft {
    std::optional<std::string> challenge = {};
    std::optional<std::string> relay = {};
    std::int64_t age = 0;
    nostr::Kind kind = nostr::kAuth;
  };
  Event auth_event(const Draft& draft) {
    return nostr::sign_event({unix_now() - draft.age,
                              draft.kind,
                              {{"relay", draft.relay.value_or(rig.url())},
                               {"challenge", draft.challenge.value_or(client.challenge())}},
                              ""},
                             alice);
  }
  std::string auth_answer(const Event& event) {
    client.send(fmt::format(R"(["AUTH",{}])", event.json()));
    return client.receive();
  }
  std::string auth_text(const Draft& draft) { return parse_ok(auth_answer(auth_event(draft))).text; }

  Event secret(const SecretKey& key, const std::string& content, Tags more = {}) {
    more.push_back({"scope", "friend"});
    more.push_back({"epoch", "1"});
    return global_note(key, content, std::move(more));
  }
};

TEST_F(AuthTest, RightAnswerIsAccepted) {
  const auto event = auth_event({});
  EXPECT_EQ(auth_answer(event), fmt::format(R"(["OK","{}",true,""])", hex_of(event)));
}

TEST_F(AuthTest, OnlyTheHostOfTheRelayCounts) {
  for (const auto* url :
       {"ws://127.0.0.1", "wss://127.0.0.1/", "ws://127.0.0.1:1/relay?x", "WS://127.0.0.1/a"}) {
    EXPECT_EQ(auth_text({.relay = url}), "") << url;
  }
  for (const auto* url : {"ws://127.0.0.2", "wss://relay.example.org", "127.0.0.1", "",
                          "ws://127.0.0.1.evil.org", "ws://user@127.0.0.1", "ftp://127.0.0.1"}) {
    EXPECT_EQ(auth_text({.relay = url}), "invalid: wrong relay") << url;
  }
}

TEST_F(AuthTest, RelayIsKnownByItsPublicNameToo) {
  const RelayRig named(Flags{{"relay.public_url", "wss://relay.example.org"}});
  NostrClient there(named.url());
  const auto event =
      nostr::sign_event({unix_now(),
                         nostr::kAuth,
                         {{"relay", "wss://relay.example.org/"}, {"challenge", there.challenge()}},
                         ""},
                        alice);
  there.send(fmt::format(R"(["AUTH",{}])", event.json()));
  EXPECT_TRUE(parse_ok(there.receive()).accepted);
}

TEST_F(AuthTest, WrongAnswersAreRefused) {
  NostrClient other(rig.url());
  EXPECT_EQ(auth_text({.challenge = "guessed"}), "invalid: wrong challenge");
  EXPECT_EQ(auth_text({.challenge = ""}), "invalid: wrong challenge");
  EXPECT_EQ(auth_text({.challenge = other.challenge()}), "invalid: wrong challenge");
  EXPECT_EQ(auth_text({.age = 11 * 60}), "invalid: created_at out of range");
  EXPECT_EQ(auth_text({.age = -11 * 60}), "invalid: created_at out of range");
  EXPECT_EQ(auth_text({.kind = 1}), "invalid: not an auth event");
  EXPECT_EQ(auth_text({.kind = 22243}), "invalid: not an auth event");
  EXPECT_EQ(auth_text({.age = 9 * 60}), "");
}

TEST_F(AuthTest, ForgedAnswersAreRefused) {
  const auto event = auth_event({});
  auto wrong_id = std::string(event.json());
  wrong_id.replace(wrong_id.find(hex_of(event)), 8, "00000000");
  client.send("[\"AUTH\"," + wrong_id + "]");
  EXPECT_EQ(parse_ok(client.receive()).text, "invalid: bad id");
  auto wrong_sig = std::string(event.json());
  wrong_sig.replace(wrong_sig.find(event.sig().hex()), 8, "00000000");
  client.send("[\"AUTH\"," + wrong_sig + "]");
  EXPECT_EQ(parse_ok(client.receive()).text, "invalid: bad signature");
  // Nobody is authenticated by that.
  EXPECT_EQ(refusal_of(secret(alice, "")), "auth-required: non-public scope");
}

TEST_F(AuthTest, ConnectionMayProveSeveralKeysButNotAnyNumber) {
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(client.authenticate(SecretKey::generate()).accepted) << i;
  EXPECT_EQ(client.authenticate(alice).text, "restricted: too many keys on one connection");
  NostrClient both(rig.url());
  EXPECT_TRUE(both.authenticate(alice).accepted);
  EXPECT_TRUE(both.authenticate(bob).accepted);
  EXPECT_TRUE(both.authenticate(alice).accepted);
  store_at(both, global_note(alice, "", {{"-"}}));
  store_at(both, global_note(bob, "", {{"-"}}));
}

TEST_F(AuthTest, AuthEventIsNeverStoredOrDelivered) {
  RelayRig open(kOpen);
  NostrClient there(open.url());
  NostrClient watcher(open.url());
  watcher.request("all", "{}");
  const auto event = nostr::sign_event(
      {unix_now(), nostr::kAuth, {{"relay", open.url()}, {"challenge", there.challenge()}}, ""}, alice);
  EXPECT_EQ(there.publish(event).text, "invalid: kind 22242 is for AUTH only");
  there.send(fmt::format(R"(["AUTH",{}])", event.json()));
  EXPECT_TRUE(parse_ok(there.receive()).accepted);
  EXPECT_EQ(there.publish(event).text, "invalid: kind 22242 is for AUTH only");
  const auto last = note(alice, "last", {});
  store_at(there, last);
  EXPECT_EQ(watcher.live("all"), last.json());
  EXPECT_THAT(watcher.stored(R"({"kinds":[22242]})").ids, IsEmpty());
  EXPECT_EQ(open.value("SELECT count(*) FROM cn_relay.events WHERE kind = 22242"), "0");
  EXPECT_EQ(open.value("SELECT count(*) FROM cn_relay.ephemeral_events"), "0");
}

TEST_F(AuthTest, NonPublicEventsAreTakenFromTheAuthenticatedOnly) {
  EXPECT_EQ(refusal_of(secret(alice, "before")), "auth-required: non-public scope");
  EXPECT_TRUE(client.authenticate(bob).accepted);
  store(secret(alice, "after"));
  EXPECT_EQ(rig.value("SELECT non_public FROM cn_relay.events"), "t");
}

TEST_F(AuthTest, NonPublicEventsAreServedToTheAuthenticatedOnly) {
  NostrClient member(rig.url());
  EXPECT_TRUE(member.authenticate(alice).accepted);
  const auto hidden = secret(alice, "hidden", {{"x", "1"}});
  const auto open = global_note(alice, "open", {{"x", "1"}, {"scope", "public"}});
  client.request("live", kGlobal);
  member.request("live", kGlobal);
  store_at(member, hidden);
  store_at(member, open);
  // From the tables and from memory.
  for (int round = 0; round < 3; ++round) {
    for (const auto& filter : {std::string(kGlobal), by_id(hidden) + "," + by_id(open),
                               global_and(R"("#x":["1"])"), global_and(R"("seq_after":0)"),
                               global_and(fmt::format(R"("authors":["{}"],"kinds":[1])", hex_of(alice)))}) {
      EXPECT_THAT(client.stored(filter).ids, ElementsAre(hex_of(open))) << filter;
      EXPECT_THAT(member.stored(filter).ids, testing::UnorderedElementsAre(hex_of(open), hex_of(hidden)))
          << filter;
      EXPECT_EQ(client.count("c", filter), R"(["COUNT","c",{"count":1}])") << filter;
      EXPECT_EQ(member.count("c", filter), R"(["COUNT","c",{"count":2}])") << filter;
    }
  }
  EXPECT_EQ(client.live("live"), open.json());
  EXPECT_EQ(member.live("live"), hidden.json());
  EXPECT_EQ(member.live("live"), open.json());
  // A client that authenticates gets what comes from then on, on the subscription that is open.
  EXPECT_TRUE(client.authenticate(bob).accepted);
  const auto next = secret(alice, "next");
  store_at(member, next);
  EXPECT_EQ(client.live("live"), next.json());
}

TEST_F(AuthTest, NonPublicEphemeralEventsReachTheAuthenticatedOnly) {
  NostrClient member(rig.url());
  EXPECT_TRUE(member.authenticate(alice).accepted);
  client.request("live", kGlobal);
  member.request("live", kGlobal);
  const auto hidden = global_note(alice, "", {{"scope", "invite"}, {"epoch", "2"}}, 20001);
  const auto open = global_note(alice, "", {}, 20001);
  EXPECT_EQ(refusal_of(hidden), "auth-required: non-public scope");
  store_at(member, hidden);
  store_at(member, open);
  EXPECT_EQ(member.live("live"), hidden.json());
  EXPECT_EQ(client.live("live"), open.json());
}

TEST_F(AuthTest, ProtectedEventIsTakenFromItsAuthorOnly) {
  const auto event = global_note(alice, "", {{"-"}});
  EXPECT_EQ(refusal_of(event), "auth-required: protected event");
  EXPECT_TRUE(client.authenticate(bob).accepted);
  EXPECT_EQ(refusal_of(event), "restricted: protected event of another author");
  EXPECT_TRUE(client.authenticate(alice).accepted);
  store(event);
  // It is served to everybody.
  NostrClient other(rig.url());
  EXPECT_THAT(other.stored(by_id(event)).ids, ElementsAre(hex_of(event)));
}

// auth.challenge = needed.
class NeededChallengeTest : public testing::Test {
 protected:
  // The next two messages: the challenge, then an answer that begins like this.
  static void expect_challenge_before(NostrClient& client, const std::string& begin) {
    client.await_challenge();
    EXPECT_THAT(client.receive(), StartsWith(begin));
  }
  NostrClient connect() const { return NostrClient(rig.url(), {}, Greeting::none); }

  RelayRig rig{Flags{{"auth.challenge", "needed"}}};
  SecretKey alice = SecretKey::generate();
};

TEST_F(NeededChallengeTest, NobodyIsGreetedWhoNeedsNothing) {
  auto client = connect();
  const auto event = global_note(alice, "hello");
  client.send(fmt::format(R"(["EVENT",{}])", event.json()));
  EXPECT_EQ(client.receive(), fmt::format(R"(["OK","{}",true,""])", hex_of(event)));
  client.send(fmt::format(R"(["REQ","s",{}])", kGlobal));
  EXPECT_THAT(client.receive(), StartsWith(R"(["EVENT","s")"));
  EXPECT_THAT(client.receive(), StartsWith(R"(["EOSE","s")"));
  EXPECT_EQ(client.count("c", kGlobal), R"(["COUNT","c",{"count":1}])");
  EXPECT_THAT(client.drain(), IsEmpty());
}

TEST_F(NeededChallengeTest, TheChallengeComesBeforeTheAnswerThatAsksForIt) {
  const auto of = [](const Event& event) { return fmt::format(R"(["EVENT",{}])", event.json()); };
  const std::vector<std::pair<std::string, std::string>> messages = {
      {of(global_note(alice, "", {{"-"}})), R"(["OK")"},
      {of(global_note(alice, "", {{"scope", "friend"}, {"epoch", "1"}})), R"(["OK")"},
      {R"(["REQ","s",{"#t":["kukuri:global"],"kinds":[1059]}])", R"(["CLOSED","s","auth-required: )"},
      {R"(["COUNT","s",{"#t":["kukuri:global"],"kinds":[4]}])", R"(["CLOSED","s","auth-required: )"},
      {R"(["REQ","s",{"#t":["kukuri:global"],"kinds":[1,1059]}])", R"(["EOSE","s")"},
      {R"(["COUNT","s",{"#t":["kukuri:global"],"kinds":[1,4]}])", R"(["COUNT","s")"},
      {R"(["AUTH",)" + std::string(note(alice, "", {}, nostr::kAuth).json()) + "]", R"(["OK")"},
  };
  for (const auto& [message, answer] : messages) {
    SCOPED_TRACE(message);
    auto client = connect();
    client.send(message);
    expect_challenge_before(client, answer);
    // Once: it stays good.
    client.send(message);
    EXPECT_THAT(client.receive(), StartsWith(answer));
    EXPECT_TRUE(client.authenticate(alice).accepted);
  }
}

TEST_F(NeededChallengeTest, WhereEverybodyMustAuthenticateItComesAtOnce) {
  rig.change({{"auth.mode", "required"}});
  NostrClient client(rig.url());
  EXPECT_TRUE(client.authenticate(alice).accepted);
}

TEST_F(NeededChallengeTest, OpenConnectionsAreAskedWhenAuthenticationComesIntoForce) {
  auto older = connect();
  EXPECT_EQ(older.stored(kGlobal).closed, "");
  rig.change({{"auth.mode", "required"}});
  older.await_challenge();
  EXPECT_EQ(older.stored(kGlobal).closed, "");
  EXPECT_TRUE(older.authenticate(alice).accepted);
}

TEST_F(AuthTest, ChallengeOfNewConnectionsFollowsTheKeyWhileTheRelayRuns) {
  rig.change({{"auth.challenge", "needed"}});
  NostrClient quiet(rig.url(), {}, Greeting::none);
  EXPECT_EQ(quiet.stored(kGlobal).closed, "");
  EXPECT_THAT(quiet.drain(), IsEmpty());
  rig.change({});
  EXPECT_EQ(NostrClient(rig.url()).challenge().size(), 32U);
}

class AuthRequiredTest : public testing::Test {
 protected:
  SecretKey alice = SecretKey::generate();
};

TEST_F(AuthRequiredTest, NothingIsServedBeforeAuthentication) {
  const RelayRig rig(Flags{{"auth.mode", "required"}});
  subscribe(rig, alice);
  NostrClient client(rig.url());
  const auto event = global_note(alice, "");
  EXPECT_EQ(client.publish(event).text, "auth-required: authenticate first");
  EXPECT_EQ(client.stored(kGlobal).closed, "auth-required: authenticate first");
  EXPECT_EQ(client.count("c", kGlobal), R"(["CLOSED","c","auth-required: authenticate first"])");
  EXPECT_TRUE(client.authenticate(alice).accepted);
  store_at(client, event);
  EXPECT_THAT(client.stored(kGlobal).ids, ElementsAre(hex_of(event)));
  EXPECT_EQ(client.count("c", kGlobal), R"(["COUNT","c",{"count":1}])");
}

TEST_F(AuthRequiredTest, WhoDoesNotAuthenticateInTimeIsClosed) {
  const RelayRig rig(Flags{{"auth.mode", "required"}, {"auth.ws_auth_timeout_seconds", "1500ms"}});
  subscribe(rig, alice);
  NostrClient member(rig.url());
  NostrClient silent(rig.url());
  EXPECT_TRUE(member.authenticate(alice).accepted);
  EXPECT_EQ(silent.receive(), R"(["NOTICE","auth-required: authenticate first"])");
  EXPECT_EQ(silent.receive_or_end(), std::nullopt);
  EXPECT_EQ(silent.close_code(), 1008);
  EXPECT_EQ(member.stored(kGlobal).closed, "");
}

TEST_F(AuthRequiredTest, OlderConnectionsHaveTheirGrace) {
  const auto enforce_at = unix_now() + 3'600;
  RelayRig rig(Flags{{"auth.mode", "required"},
                     {"auth.enforce_at", std::to_string(enforce_at)},
                     {"auth.grace_seconds", "600"},
                     {"auth.ws_auth_timeout_seconds", "3600"}});
  NostrClient older(rig.url());
  EXPECT_EQ(older.stored(kGlobal).closed, "");
  rig.clock().shift(std::chrono::seconds(3'605));
  NostrClient newer(rig.url());
  EXPECT_EQ(newer.stored(kGlobal).closed, "auth-required: authenticate first");
  EXPECT_EQ(older.stored(kGlobal).closed, "");
  store_at(older, global_note(alice, ""));
  rig.clock().shift(std::chrono::seconds(3'600 + 605));
  // Then it is closed, unless it asks for something first.
  EXPECT_EQ(older.receive(), R"(["NOTICE","auth-required: authenticate first"])");
  EXPECT_EQ(older.receive_or_end(), std::nullopt);
}

TEST_F(AuthRequiredTest, SwitchedOnWhileConnectionsAreOpenItLeavesThemTheirGrace) {
  RelayRig rig(Flags{{"auth.grace_seconds", "600"}, {"auth.ws_auth_timeout_seconds", "3600"}});
  subscribe(rig, alice);
  NostrClient older(rig.url());
  NostrClient member(rig.url());
  EXPECT_EQ(older.stored(kGlobal).closed, "");
  rig.change({{"auth.mode", "required"}});
  NostrClient newer(rig.url());
  EXPECT_EQ(newer.stored(kGlobal).closed, "auth-required: authenticate first");
  store_at(older, global_note(alice, ""));
  EXPECT_TRUE(member.authenticate(alice).accepted);
  // Another change on the way does not begin the grace anew.
  rig.clock().shift(std::chrono::seconds(300));
  rig.change({{"auth.mode", "required"}, {"relay.name", "other"}});
  EXPECT_EQ(older.stored(kGlobal).closed, "");
  rig.clock().shift(std::chrono::seconds(605));
  EXPECT_EQ(older.receive(), R"(["NOTICE","auth-required: authenticate first"])");
  EXPECT_EQ(older.receive_or_end(), std::nullopt);
  EXPECT_EQ(older.close_code(), 1008);
  EXPECT_EQ(member.stored(kGlobal).closed, "");
}

TEST_F(AuthRequiredTest, SwitchedOnForLaterItHoldsFromThenOn) {
  RelayRig rig(Flags{{"auth.grace_seconds", "600"}, {"auth.ws_auth_timeout_seconds", "3600"}});
  rig.change({{"auth.mode", "required"}, {"auth.enforce_at", std::to_string(unix_now() + 3'600)}});
  NostrClient older(rig.url());
  EXPECT_EQ(older.stored(kGlobal).closed, "");
  rig.clock().shift(std::chrono::seconds(3'605));
  NostrClient newer(rig.url());
  EXPECT_EQ(newer.stored(kGlobal).closed, "auth-required: authenticate first");
  EXPECT_EQ(older.stored(kGlobal).closed, "");
}

TEST_F(AuthRequiredTest, SwitchedOffItAsksNobodyAnyMore) {
  RelayRig rig;
  rig.change({{"auth.mode", "required"}});
  NostrClient client(rig.url());
  EXPECT_EQ(client.stored(kGlobal).closed, "auth-required: authenticate first");
  rig.change({});
  EXPECT_EQ(client.stored(kGlobal).closed, "");
}

TEST_F(AuthRequiredTest, SwitchedOnItClosesWhoConnectsAndDoesNotAuthenticateInTime) {
  RelayRig rig(Flags{{"auth.ws_auth_timeout_seconds", "100ms"}});
  NostrClient older(rig.url());
  rig.change({{"auth.mode", "required"}});
  NostrClient silent(rig.url());
  EXPECT_EQ(silent.receive(), R"(["NOTICE","auth-required: authenticate first"])");
  EXPECT_EQ(silent.receive_or_end(), std::nullopt);
  EXPECT_EQ(older.stored(kGlobal).closed, "");
}

TEST_F(AuthRequiredTest, ManyConnectionsComeAndGoWhileTheyAreChecked) {
  const RelayRig rig(Flags{{"auth.mode", "required"}, {"auth.ws_auth_timeout_seconds", "5s"}});
  // For longer than the time between two checks.
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(1'300);
  while (std::chrono::steady_clock::now() < until) {
    NostrClient client(rig.url());
    EXPECT_EQ(client.challenge().size(), 32U);
  }
  subscribe(rig, alice);
  NostrClient member(rig.url());
  EXPECT_TRUE(member.authenticate(alice).accepted);
  EXPECT_EQ(member.stored(kGlobal).closed, "");
}

}  // namespace
}  // namespace todoke::test

#include "nostr/rules.hpp"

#include "nostr/event_id.hpp"
#include "nostr/expiry.hpp"
#include "nostr/test_support.hpp"

namespace todoke::nostr {
namespace {

using test::kNow;
using test::Tags;

const std::chrono::sys_seconds kClock{std::chrono::seconds(kNow)};

std::string_view broken(const Event& event, const RuleSettings& settings = {}, const Sender& sender = {}) {
  const auto reason = broken_rule(event, settings, sender, kClock);
  return reason ? text_of(*reason) : "";
}

RuleSettings open_policy() {
  RuleSettings settings;
  settings.policy = TopicPolicy::open;
  return settings;
}

Tags with_topic(Tags tags) {
  tags.insert(tags.begin(), {"t", test::kTopic});
  return tags;
}

std::string_view broken_tags(Kind kind, Tags tags) {
  return broken(test::event_with(kind, with_topic(std::move(tags))));
}

TEST(Rules, TopicsPolicyAsksForATopic) {
  EXPECT_EQ(broken_tags(1, {}), "");
  EXPECT_EQ(broken(test::event_with(1, {})), "invalid: missing topic");
  EXPECT_EQ(broken(test::event_with(1, {{"t", "hashtag"}})), "invalid: missing topic");
  EXPECT_EQ(broken(test::event_with(kDeletion, {{"e", test::kHexA}})), "invalid: missing topic");
  RuleSettings settings;
  settings.reserved_topics = {"hashtag"};
  EXPECT_EQ(broken(test::event_with(1, {{"t", "hashtag"}}), settings), "");
}

TEST(Rules, ARequestToVanishNeedsNoTopicButMustBeMeantForThisRelay) {
  auto settings = open_policy();
  for (const auto policy : {TopicPolicy::topics, TopicPolicy::open}) {
    settings.policy = policy;
    settings.public_host = "relay.example.org";
    const auto ask = [&](Tags tags) { return broken(test::event_with(kVanish, std::move(tags)), settings); };
    EXPECT_EQ(ask({{"relay", "ALL_RELAYS"}}), "");
    EXPECT_EQ(ask({{"relay", "wss://relay.example.org/"}}), "");
    EXPECT_EQ(ask({{"relay", "wss://relay.example.com/"}}),
              "restricted: request to vanish from other relays");
    EXPECT_EQ(ask({}), "restricted: request to vanish from other relays");
  }
}

TEST(Rules, TopicsPolicyAsksAddressableEventsForD) {
  EXPECT_EQ(broken_tags(30000, {}), "invalid: missing d");
  EXPECT_EQ(broken_tags(30000, {{"d"}}), "") << "an empty d is one";
  EXPECT_EQ(broken_tags(30000, {{"d", "x"}}), "");
  EXPECT_EQ(broken_tags(10000, {}), "");
}

TEST(Rules, OpenPolicyAsksForNeither) {
  EXPECT_EQ(broken(test::event_with(1, {}), open_policy()), "");
  EXPECT_EQ(broken(test::event_with(30000, {}), open_policy()), "");
}

TEST(Rules, P2pOnlyKindsAreRefusedInBothPolicies) {
  for (const auto kind : std::initializer_list<Kind>{39020, 39021, 39022}) {
    EXPECT_EQ(broken_tags(kind, {{"d", "x"}}), "restricted: p2p only");
    EXPECT_EQ(broken(test::event_with(kind, {}), open_policy()), "restricted: p2p only");
  }
}

TEST(Rules, AuthEventsAreNotPublished) {
  EXPECT_EQ(broken_tags(22242, {}), "invalid: kind 22242 is for AUTH only");
  EXPECT_EQ(broken(test::event_with(22242, {}), open_policy()), "invalid: kind 22242 is for AUTH only");
}

TEST(Rules, CreatedAtIsBoundedInTheFutureAndIfWishedInThePast) {
  auto settings = open_policy();
  const auto at = [&](std::int64_t created_at) {
    return broken(test::event_with(1, {}, "", created_at), settings);
  };
  const auto out = "invalid: created_at out of range";
  EXPECT_EQ(at(kNow + 900), "");
  EXPECT_EQ(at(kNow + 901), out);
  EXPECT_EQ(at(std::numeric_limits<std::int64_t>::max()), out);
  EXPECT_EQ(at(0), "");
  EXPECT_EQ(at(std::numeric_limits<std::int64_t>::min()), "");
  settings.past_max = std::chrono::seconds(60);
  EXPECT_EQ(at(kNow - 60), "");
  EXPECT_EQ(at(kNow - 61), out);
  EXPECT_EQ(at(std::numeric_limits<std::int64_t>::min()), out);
}

TEST(Rules, ExpiredEventsAreRefusedFromThatSecondInBothPolicies) {
  for (const auto& settings : {RuleSettings{}, open_policy()}) {
    const auto with = [&](const std::string& value) {
      return broken(test::event_with(1, with_topic({{"expiration", value}})), settings);
    };
    EXPECT_EQ(with(std::to_string(kNow + 1)), "");
    EXPECT_EQ(with(std::to_string(kNow)), "invalid: expired");
    EXPECT_EQ(with("0"), "invalid: expired");
    EXPECT_EQ(with("-1"), "invalid: expired");
    for (const auto* bad : {"", "soon", "1.5", " 1", "1 ", "+1", "0x10", "99999999999999999999", "01"}) {
      EXPECT_EQ(with(bad), "invalid: expiration must be an integer") << bad;
    }
  }
}

TEST(Expiry, IsTheEarliestOfAllThatCount) {
  EXPECT_EQ(*expiry_of(test::event_with(1, {})), std::nullopt);
  EXPECT_EQ(*expiry_of(test::event_with(1, {{"expiration", "7"}, {"expiration", "5"}, {"exp", "1"}})), 5);
  for (const auto kind : std::initializer_list<Kind>{39000, 39001, 39006}) {
    EXPECT_EQ(*expiry_of(test::event_with(kind, {{"exp", "3"}})), 3);
    EXPECT_EQ(*expiry_of(test::event_with(kind, {{"exp", "3"}, {"expiration", "2"}})), 2);
  }
  EXPECT_EQ(*expiry_of(test::event_with(39005, {{"exp", "3"}})), std::nullopt);
}

TEST(Rules, NonPublicEventsSayTheirEpoch) {
  const std::vector<Pubkey> keys = {test::alice().pubkey()};
  const auto with = [&](Tags tags) {
    return broken(test::event_with(1, with_topic(std::move(tags))), {}, {keys});
  };
  for (const auto* scope : {"friend_plus", "friend", "invite"}) {
    EXPECT_EQ(with({{"scope", scope}, {"epoch", "1"}}), "");
    EXPECT_EQ(with({{"scope", scope}}), "invalid: missing epoch");
    EXPECT_EQ(with({{"scope", scope}, {"epoch", "0"}}), "invalid: epoch must be positive");
    EXPECT_EQ(with({{"scope", scope}, {"epoch", "-3"}}), "invalid: epoch must be positive");
    for (const auto* bad : {"", "x", "1.0", "1e3", "01", "9223372036854775808"}) {
      EXPECT_EQ(with({{"scope", scope}, {"epoch", bad}}), "invalid: epoch must be an integer") << bad;
    }
    EXPECT_EQ(with({{"scope", scope}, {"epoch", "1"}, {"epoch", "2"}}), "invalid: more than one epoch");
  }
  EXPECT_EQ(with({{"scope", "public"}}), "");
  EXPECT_EQ(with({{"scope", "Friend"}, {"epoch", "1"}}), "invalid: unknown scope");
  EXPECT_EQ(with({{"scope"}}), "invalid: unknown scope");
  EXPECT_EQ(with({{"scope", "public"}, {"scope", "friend"}, {"epoch", "1"}}), "invalid: more than one scope");
  EXPECT_EQ(with({{"epoch", "1"}}), "invalid: missing scope");
}

TEST(Rules, NonPublicEventsComeFromAuthenticatedSendersOnly) {
  const auto event = test::event_with(1, with_topic({{"scope", "friend"}, {"epoch", "1"}}));
  const std::vector<Pubkey> somebody = {*Pubkey::from_hex(test::kHexA)};
  EXPECT_EQ(broken(event), "auth-required: non-public scope");
  EXPECT_EQ(broken(event, open_policy()), "auth-required: non-public scope");
  EXPECT_EQ(broken(event, {}, {somebody}), "");
  EXPECT_EQ(broken(event, {}, {{}, true}), "");
  EXPECT_EQ(*scope_of(event), Scope::non_public);
  EXPECT_EQ(*scope_of(test::event_with(1, {})), Scope::open);
}

TEST(Rules, ProtectedEventsComeFromTheirAuthorOnly) {
  const auto event = test::event_with(1, with_topic({{"-"}}));
  const std::vector<Pubkey> other = {*Pubkey::from_hex(test::kHexA)};
  const std::vector<Pubkey> both = {other[0], test::alice().pubkey()};
  EXPECT_EQ(broken(event), "auth-required: protected event");
  EXPECT_EQ(broken(event, {}, {other}), "restricted: protected event of another author");
  EXPECT_EQ(broken(event, {}, {both}), "");
  EXPECT_EQ(broken(event, {}, {{}, true}), "");
}

TEST(Rules, AMinimumOfWorkCanBeAskedFor) {
  const auto event = test::event_with(1, {});
  auto settings = open_policy();
  settings.difficulty_bits_min = difficulty_of(event.id());
  EXPECT_EQ(broken(event, settings), "");
  settings.difficulty_bits_min += 1;
  EXPECT_EQ(broken(event, settings), "pow: difficulty too low");

  // Lucky, but aimed at less than what is asked for.
  settings.difficulty_bits_min = 4;
  for (int nonce = 0;; ++nonce) {
    const auto mined = test::event_with(1, {{"nonce", std::to_string(nonce), "3"}});
    if (difficulty_of(mined.id()) < 4) continue;
    EXPECT_EQ(broken(mined, settings), "pow: difficulty too low");
    break;
  }
}

}  // namespace
}  // namespace todoke::nostr

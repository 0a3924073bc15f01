#include "nostr/auth.hpp"

#include <limits>

#include "nostr/test_support.hpp"

namespace todoke::nostr {
namespace {

const std::string kChallenge(32, 'c');
const AuthTarget kRelay{{"relay.example:7777", "[::1]:8080", "127.0.0.1", "", "wss://Public.example/relay"}};

struct Answer {
  Kind kind = kAuth;
  std::int64_t created_at = test::kNow;
  std::string challenge = kChallenge;
  std::string relay = "wss://relay.example/";
};

std::string_view refusal_of(const Event& event, std::string_view challenge = kChallenge) {
  const auto broken =
      broken_auth(event, challenge, kRelay, std::chrono::sys_seconds(std::chrono::seconds(test::kNow)));
  return broken ? text_of(*broken) : "";
}

std::string_view refusal_of(const Answer& answer) {
  return refusal_of(test::event_with(answer.kind, {{"relay", answer.relay}, {"challenge", answer.challenge}},
                                     "", answer.created_at));
}

TEST(Auth, TakesTheSignedChallengeForThisRelay) {
  EXPECT_EQ(refusal_of(Answer{}), "");
}

TEST(Auth, RefusesOtherKindsAndChallenges) {
  EXPECT_EQ(refusal_of(Answer{.kind = 1}), "invalid: not an auth event");
  EXPECT_EQ(refusal_of(Answer{.challenge = std::string(32, 'd')}), "invalid: wrong challenge");
  EXPECT_EQ(refusal_of(Answer{.challenge = kChallenge + "c"}), "invalid: wrong challenge");
  EXPECT_EQ(refusal_of(test::event_with(kAuth, {{"relay", "wss://relay.example"}})),
            "invalid: wrong challenge");
}

TEST(Auth, AnEmptyChallengeCannotBeAnswered) {
  for (const auto& tag : {std::vector<std::string>{"challenge"}, {"challenge", ""}}) {
    EXPECT_EQ(refusal_of(test::event_with(kAuth, {{"relay", "wss://relay.example"}, tag}), ""),
              "invalid: wrong challenge");
  }
}

TEST(Auth, TheClockMayBeTenMinutesOff) {
  for (const std::int64_t off : {-600, 600}) {
    EXPECT_EQ(refusal_of(Answer{.created_at = test::kNow + off}), "") << off;
  }
  for (const std::int64_t at :
       {test::kNow - 601, test::kNow + 601, std::int64_t{0}, std::numeric_limits<std::int64_t>::max()}) {
    EXPECT_EQ(refusal_of(Answer{.created_at = at}), "invalid: created_at out of range") << at;
  }
}

TEST(Auth, OnlyTheHostOfTheRelaysUrlCounts) {
  for (const auto* relay : {"wss://relay.example", "ws://relay.example/relay", "WSS://Relay.Example:443/",
                            "https://relay.example", "http://relay.example:80/relay/",
                            "ws://relay.example:7777", "ws://relay.example:9?x=1#y", "ws://[::1]:1/relay",
                            "ws://[::1]", "ws://127.0.0.1:4000/", "wss://public.example"}) {
    EXPECT_EQ(refusal_of(Answer{.relay = relay}), "") << relay;
  }
  for (const auto* relay :
       {"", "wss://", "wss:///relay.example", "relay.example", "ftp://relay.example", "wss://other.example",
        "wss://relay.example.other", "wss://sub.relay.example", "wss://relay.example@other.example",
        "wss://user@relay.example", "wss://relay.example:port", "wss://other/relay.example", "ws://[::1",
        "ws://[::1]x", "ws://::1", "wss://relay.example\\@other"}) {
    EXPECT_EQ(refusal_of(Answer{.relay = relay}), "invalid: wrong relay") << relay;
  }
  EXPECT_EQ(refusal_of(test::event_with(kAuth, {{"challenge", kChallenge}})), "invalid: wrong relay");
}

TEST(Auth, ChallengesAreThirtyTwoHexDigitsAndNeverTheSame) {
  const auto one = make_challenge();
  EXPECT_EQ(one.size(), 32U);
  EXPECT_EQ(one.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(one, make_challenge());
}

}  // namespace
}  // namespace todoke::nostr

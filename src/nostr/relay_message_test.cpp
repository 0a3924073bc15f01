#include "nostr/relay_message.hpp"

#include <gtest/gtest.h>

namespace todoke::nostr {
namespace {

using RelayVerb = RelayMessage::Verb;

TEST(RelayMessageTest, EveryVerbIsReadWithWhatItCarries) {
  const auto event = parse_relay_message(R"( ["EVENT", "s", {"id":"x", "tags":[["t","]"]]} ] )").value();
  EXPECT_EQ(event.verb, RelayVerb::event);
  EXPECT_EQ(event.subject, "s");
  EXPECT_EQ(event.json, R"({"id":"x", "tags":[["t","]"]]})");

  const auto ok = parse_relay_message(R"(["OK","ab",false,"blocked: \u0041"])").value();
  EXPECT_EQ(ok.verb, RelayVerb::ok);
  EXPECT_EQ(ok.subject, "ab");
  EXPECT_FALSE(ok.accepted);
  EXPECT_EQ(ok.text, "blocked: A");
  EXPECT_TRUE(parse_relay_message(R"(["OK","ab",true])").value().accepted) << "an older relay gives no text";

  const auto eose = parse_relay_message(R"(["EOSE","s",["finish","seq:4"] ])").value();
  EXPECT_EQ(eose.verb, RelayVerb::eose);
  EXPECT_EQ(eose.json, R"(["finish","seq:4"])");
  EXPECT_EQ(parse_relay_message(R"(["EOSE","s"])").value().json, "");
  const auto closed = parse_relay_message(R"(["CLOSED","s","auth-required: x"])").value();
  EXPECT_EQ(closed.verb, RelayVerb::closed);
  EXPECT_EQ(closed.text, "auth-required: x");
  EXPECT_EQ(parse_relay_message(R"(["NOTICE","slow down"])").value().text, "slow down");
  EXPECT_EQ(parse_relay_message(R"(["AUTH","c0ffee"])").value().text, "c0ffee");
  EXPECT_EQ(parse_relay_message(R"(["COUNT","s",{"count":3}])").value().json, R"({"count":3})");
  const auto neg = parse_relay_message(R"(["NEG-MSG","s","61"])").value();
  EXPECT_EQ(neg.verb, RelayVerb::neg_msg);
  EXPECT_EQ(neg.text, "61");
  EXPECT_EQ(parse_relay_message(R"(["NEG-ERR","s","blocked: x",7])").value().text, "blocked: x");
}

TEST(RelayMessageTest, UnknownVerbsAreLeftAsideAndBrokenMessagesAreNone) {
  EXPECT_EQ(parse_relay_message(R"(["NEG-WHAT","s","61"])").value().verb, RelayVerb::other);
  for (const auto* text :
       {R"(["NEG-MSG","s"])", R"(["NEG-MSG","s",61])", "", "{}", "[]", "[1]", R"(["EVENT","s"])",
        R"(["EVENT","s",3])", R"(["OK","ab"])", R"(["OK","ab","true"])", R"(["EOSE"])", R"(["COUNT","s"])",
        R"(["NOTICE"])", R"(["EOSE","s")", R"(["EOSE","s"]])"}) {
    EXPECT_FALSE(parse_relay_message(text)) << text;
  }
}

}  // namespace
}  // namespace todoke::nostr

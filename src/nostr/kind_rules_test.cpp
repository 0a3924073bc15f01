#include "nostr/kind_rules.hpp"

#include <algorithm>

#include "nostr/rules.hpp"
#include "nostr/test_support.hpp"

namespace todoke::nostr {
namespace {

using test::Tags;

const std::string kLater = std::to_string(test::kNow + 100);
constexpr std::string_view kDescriptor =
    R"({"schema":"kukuri-node-desc-v1","name":"n","roles":["relay"],"endpoints":{"ws":"wss://x"},)"
    R"("policy_url":"https://x","jurisdiction":"JP","contact":"a@b"})";

// A good event of the kind, from which the tests take things away.
Tags good_tags(Kind kind) {
  Tags tags = {{"t", test::kTopic}, {"d", "x"}};
  if (kind >= 39000) tags.insert(tags.end(), {{"k", "kukuri"}, {"ver", "1"}});
  switch (kind) {
    case kNodeDescriptor:
      tags[1][1] = "descriptor";
      tags.push_back({"exp", kLater});
      break;
    case kTopicService:
      tags[1][1] = "topic_service:" + test::kTopic + ":relay:friend";
      tags.insert(tags.end(), {{"role", "relay"}, {"scope", "friend"}, {"exp", kLater}});
      break;
    case kReport:
      tags.insert(tags.end(), {{"target", "event:" + test::kHexA}, {"reason", "spam"}});
      break;
    case kLabel:
      tags.insert(tags.end(), {{"target", "pubkey:" + test::kHexA},
                               {"label", "safe"},
                               {"exp", kLater},
                               {"policy_url", "https://x"},
                               {"policy_ref", "v1"},
                               {"confidence", "0.5"}});
      break;
    case kTrustProviders:
      tags.push_back({"30382:rank", test::kHexA, "wss://x"});
      break;
    default:
      tags.insert(tags.end(), {{"claim", "x"}, {"rank", "50"}, {"expiration", kLater}});
  }
  return tags;
}

std::string good_content(Kind kind) {
  if (kind == kNodeDescriptor) return std::string(kDescriptor);
  if (kind == kTopicService) return R"({"schema":"kukuri-topic-service-v1"})";
  return "";
}

std::string_view broken(Kind kind, const Tags& tags, const std::string& content,
                        TopicPolicy policy = TopicPolicy::topics) {
  RuleSettings settings;
  settings.policy = policy;
  const auto reason = broken_rule(test::event_with(kind, tags, content), settings, {},
                                  std::chrono::sys_seconds(std::chrono::seconds(test::kNow)));
  return reason ? text_of(*reason) : "";
}

std::string_view without(Kind kind, std::string_view name) {
  auto tags = good_tags(kind);
  std::erase_if(tags, [&](const auto& tag) { return tag[0] == name; });
  return broken(kind, tags, good_content(kind));
}

std::string_view with(Kind kind, std::string_view name, const std::string& value) {
  auto tags = good_tags(kind);
  const auto tag = std::find_if(tags.begin(), tags.end(), [&](const auto& one) { return one[0] == name; });
  EXPECT_NE(tag, tags.end()) << name;
  (*tag)[1] = value;
  return broken(kind, tags, good_content(kind));
}

constexpr Kind kAll[] = {39000, 39001, 39005, 39006, 30382, 30383, 30384, 30385, 10040};

TEST(KindRules, CompleteEventsPass) {
  for (const auto kind : kAll) EXPECT_EQ(broken(kind, good_tags(kind), good_content(kind)), "") << kind;
}

TEST(KindRules, EachMissingTagHasItsText) {
  for (const auto kind : std::initializer_list<Kind>{39000, 39001, 39005, 39006}) {
    EXPECT_EQ(without(kind, "k"), "invalid: k must be kukuri");
    EXPECT_EQ(with(kind, "k", "other"), "invalid: k must be kukuri");
    EXPECT_EQ(without(kind, "ver"), "invalid: ver must be 1");
    EXPECT_EQ(with(kind, "ver", "2"), "invalid: ver must be 1");
    EXPECT_EQ(without(kind, "d"), "invalid: missing d");
  }
  EXPECT_EQ(with(39000, "d", "x"), "invalid: d must be descriptor");
  EXPECT_EQ(without(39000, "exp"), "invalid: missing exp");
  EXPECT_EQ(with(39000, "exp", "1"), "invalid: expired");
  EXPECT_EQ(without(39001, "role"), "invalid: missing role");
  EXPECT_EQ(without(39001, "scope"), "invalid: missing scope");
  EXPECT_EQ(with(39001, "scope", "all"), "invalid: unknown scope");
  EXPECT_EQ(without(39001, "exp"), "invalid: missing exp");
  EXPECT_EQ(with(39001, "role", "index"), "invalid: d must be topic_service:<topic>:<role>:<scope>");
  for (const auto kind : std::initializer_list<Kind>{39005, 39006}) {
    EXPECT_EQ(without(kind, "target"), "invalid: missing target");
    for (const auto& bad : {std::string(), std::string("event:"), test::kHexA, "relay:" + test::kHexA,
                            "event:" + std::string(64, 'A')}) {
      EXPECT_EQ(with(kind, "target", bad), "invalid: target must be event:<id> or pubkey:<hex>") << bad;
    }
  }
  EXPECT_EQ(without(39005, "reason"), "invalid: missing reason");
  EXPECT_EQ(with(39005, "reason", "safe"), "invalid: unknown reason");
  EXPECT_EQ(without(39006, "label"), "invalid: missing label");
  EXPECT_EQ(with(39006, "label", "ugly"), "invalid: unknown label");
  EXPECT_EQ(without(39006, "exp"), "invalid: missing exp");
  EXPECT_EQ(without(39006, "policy_url"), "invalid: missing policy_url");
  EXPECT_EQ(without(39006, "policy_ref"), "invalid: missing policy_ref");
  EXPECT_EQ(without(39006, "confidence"), "") << "optional";
  for (const auto* good : {"0", "1", "0.25", "1.0"}) EXPECT_EQ(with(39006, "confidence", good), "") << good;
  for (const auto* bad : {"", "1.1", "-0.1", "high", "nan", "0.5 "}) {
    EXPECT_EQ(with(39006, "confidence", bad), "invalid: confidence must be from 0 to 1") << bad;
  }
  for (const auto kind : std::initializer_list<Kind>{30382, 30383, 30384, 30385}) {
    EXPECT_EQ(without(kind, "claim"), "invalid: missing claim");
    EXPECT_EQ(without(kind, "rank"), "invalid: missing rank");
    EXPECT_EQ(without(kind, "expiration"), "invalid: missing expiration");
    for (const auto* bad : {"-1", "101", "50.5", ""}) {
      EXPECT_EQ(with(kind, "rank", bad), "invalid: rank must be an integer from 0 to 100") << bad;
    }
  }
  EXPECT_EQ(without(10040, "30382:rank"), "invalid: missing <kind>:rank");
  EXPECT_EQ(with(10040, "30382:rank", "nobody"), "invalid: missing <kind>:rank");
}

TEST(KindRules, EveryReasonAndLabelIsKnown) {
  for (const auto* reason : {"spam", "illegal", "harassment", "impersonation", "nsfw"}) {
    EXPECT_EQ(with(39005, "reason", reason), "");
    EXPECT_EQ(with(39006, "label", reason), "");
  }
}

TEST(KindRules, ContentFollowsItsSchema) {
  const auto content = [](Kind kind, const std::string& text) { return broken(kind, good_tags(kind), text); };
  for (const auto kind : std::initializer_list<Kind>{39000, 39001}) {
    for (const auto* bad : {"", "text", "[]", "{", R"({"schema":"x"} x)"}) {
      EXPECT_EQ(content(kind, bad), "invalid: content must be a JSON object") << bad;
    }
    EXPECT_EQ(content(kind, "{}"), "invalid: wrong content schema");
    EXPECT_EQ(content(kind, R"({"schema":"kukuri-other-v1"})"), "invalid: wrong content schema");
    EXPECT_EQ(content(kind, R"({"schema":1})"), "invalid: wrong content schema");
  }
  const std::string good(kDescriptor);
  for (const auto* member : {"name", "roles", "endpoints", "policy_url", "jurisdiction", "contact"}) {
    EXPECT_EQ(content(39000, test::replaced(good, std::string("\"") + member + "\"", "\"other\"")),
              "invalid: missing content member")
        << member;
  }
  EXPECT_EQ(content(39000, test::replaced(good, R"(["relay"])", "[1]")), "invalid: missing content member");
}

TEST(KindRules, OpenPolicyHoldsOnlyMarkedEventsToThem) {
  EXPECT_EQ(broken(39000, {{"d", "group"}}, "", TopicPolicy::open), "") << "another protocol's use";
  EXPECT_EQ(broken(39000, {{"k", "kukuri"}, {"ver", "1"}, {"d", "group"}}, "", TopicPolicy::open),
            "invalid: d must be descriptor");
  EXPECT_EQ(broken(30382, {{"d", "x"}, {"rank", "1"}}, "", TopicPolicy::open), "");
}

}  // namespace
}  // namespace todoke::nostr

// NIP-11: what the relay says about itself over HTTP.
#include <fmt/format.h>
#include <simdjson.h>

#include "app/version.hpp"
#include "harness/http_rig.hpp"
#include "support.hpp"

namespace todoke::test {
namespace {

using net::test::RawClient;
using net::test::RawResponse;

RawResponse ask(const RelayRig& rig, const std::string& method, const std::string& path,
                const std::string& accept) {
  RawClient http(rig.port());
  auto request =
      fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\nOrigin: https://client.example\r\n", method, path);
  if (!accept.empty()) request += "Accept: " + accept + "\r\n";
  http.send(request + "\r\n");
  return http.read_response(method == "HEAD");
}

class Document {
 public:
  explicit Document(const RelayRig& rig) : text_(ask(rig, "GET", "/", "application/nostr+json").body) {
    root_ = parser_.parse(text_);
  }
  [[nodiscard]] std::string text(std::string_view pointer) const {
    return simdjson::minify(root_.at_pointer(pointer));
  }
  [[nodiscard]] bool has(std::string_view pointer) const {
    return root_.at_pointer(pointer).error() == simdjson::SUCCESS;
  }

 private:
  std::string text_;
  simdjson::dom::parser parser_;
  simdjson::dom::element root_;
};

void expect_cors(const RawResponse& response) {
  EXPECT_EQ(response.header("Access-Control-Allow-Origin"), "*");
  EXPECT_THAT(response.header("Access-Control-Allow-Headers"), StartsWith("*"));
  EXPECT_THAT(response.header("Access-Control-Allow-Methods"), HasSubstr("GET"));
  EXPECT_THAT(response.header("Access-Control-Allow-Methods"), HasSubstr("OPTIONS"));
}

TEST(InfoTest, DocumentIsServedAtBothEndpointsToWhoAsksForIt) {
  const RelayRig rig;
  for (const auto* path : {"/", "/relay"}) {
    for (const auto* accept : {"application/nostr+json", "text/html, application/nostr+json;q=0.9"}) {
      const auto response = ask(rig, "GET", path, accept);
      EXPECT_EQ(response.status, 200);
      EXPECT_EQ(response.header("Content-Type"), "application/nostr+json") << accept;
      EXPECT_EQ(response.header("Vary"), "Accept");
      EXPECT_THAT(response.body, StartsWith("{\"name\":\"todoke\""));
      expect_cors(response);
    }
    const auto head = ask(rig, "HEAD", path, "application/nostr+json");
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.header("Content-Type"), "application/nostr+json");
    expect_cors(head);
  }
}

TEST(InfoTest, BrowserIsAllowedToAskFromAnywhere) {
  const RelayRig rig;
  for (const auto* path : {"/", "/relay"}) {
    const auto preflight = ask(rig, "OPTIONS", path, "");
    EXPECT_EQ(preflight.status, 204);
    EXPECT_EQ(preflight.body, "");
    expect_cors(preflight);
  }
}

TEST(InfoTest, OthersGetAWordForPeople) {
  const RelayRig rig;
  for (const auto* accept : {"", "text/html", "*/*"}) {
    const auto response = ask(rig, "GET", "/", accept);
    EXPECT_EQ(response.status, 200);
    EXPECT_THAT(response.header("Content-Type"), StartsWith("text/plain"));
    EXPECT_THAT(response.body, StartsWith(fmt::format("todoke {}", app::kVersion)));
    EXPECT_EQ(response.header("Vary"), "Accept");
    expect_cors(response);
  }
}

TEST(InfoTest, DefaultsAreTold) {
  const RelayRig rig;
  const Document document(rig);
  EXPECT_EQ(document.text("/supported_nips"), "[1,9,11,13,40,42,45,59,62,67,70,77,86]");
  EXPECT_EQ(document.text("/version"), fmt::format("\"{}\"", app::kVersion));
  EXPECT_EQ(document.text("/limitation/max_message_length"), "131072");
  EXPECT_EQ(document.text("/limitation/max_subscriptions"), "50");
  EXPECT_EQ(document.text("/limitation/max_filters"), "20");
  EXPECT_EQ(document.text("/limitation/max_limit"), "5000");
  EXPECT_EQ(document.text("/limitation/default_limit"), "500");
  EXPECT_EQ(document.text("/limitation/max_subid_length"), "64");
  EXPECT_EQ(document.text("/limitation/max_event_tags"), "2000");
  EXPECT_EQ(document.text("/limitation/max_tag_values"), "100");
  EXPECT_EQ(document.text("/limitation/max_filter_values"), "2000");
  EXPECT_EQ(document.text("/limitation/max_filter_tags"), "8");
  EXPECT_EQ(document.text("/limitation/max_event_length"), "65536");
  EXPECT_EQ(document.text("/limitation/min_pow_difficulty"), "0");
  EXPECT_EQ(document.text("/limitation/auth_required"), "false");
  EXPECT_EQ(document.text("/limitation/payment_required"), "false");
  EXPECT_EQ(document.text("/limitation/restricted_writes"), "true");
  EXPECT_EQ(document.text("/limitation/created_at_upper_limit"), "900");
  EXPECT_FALSE(document.has("/limitation/created_at_lower_limit"));
  EXPECT_EQ(document.text("/topics/policy"), "\"topics\"");
  EXPECT_EQ(document.text("/topics/accept"), "\"listed\"");
  EXPECT_EQ(document.text("/topics/network_id"), "\"kukuri:main:\"");
  EXPECT_EQ(document.text("/topics/reserved"), "[]");
  for (const auto* absent : {"/description", "/pubkey", "/contact", "/rate_limits", "/software", "/icon",
                             "/banner", "/posting_policy", "/privacy_policy", "/terms_of_service"}) {
    EXPECT_FALSE(document.has(absent)) << absent;
  }
}

TEST(InfoTest, EverythingThatIsConfiguredIsTold) {
  const auto pubkey = std::string(64, 'a');
  const RelayRig rig(Flags{{"relay.name", "a \"name\""},
                           {"relay.description", "words"},
                           {"relay.contact", "mailto:a@example.org"},
                           {"relay.pubkey", pubkey},
                           {"relay.software", "https://example.org/software"},
                           {"relay.icon", "https://example.org/icon.png"},
                           {"relay.banner", "https://example.org/banner.png"},
                           {"relay.posting_policy", "https://example.org/posting"},
                           {"relay.privacy_policy", "https://example.org/privacy"},
                           {"relay.terms_of_service", "https://example.org/terms"},
                           {"relay.topic_policy", "open"},
                           {"relay.accept_topics", "any"},
                           {"topics.network_id", "kukuri:dev:"},
                           {"topics.reserved", "lobby,hall"},
                           {"relay.message_bytes_max", "8KiB"},
                           {"relay.event_bytes_max", "4KiB"},
                           {"relay.tags_max", "7"},
                           {"relay.filters_max", "3"},
                           {"relay.subscriptions_max", "4"},
                           {"relay.limit_default", "5"},
                           {"relay.limit_max", "6"},
                           {"relay.created_at_future_max", "1m"},
                           {"relay.created_at_past_max", "1h"},
                           {"relay.difficulty_min", "1"},
                           {"auth.mode", "required"},
                           {"limits.rates", "on"},
                           {"limits.events_per_minute", "11"},
                           {"limits.reqs_per_minute", "12"},
                           {"limits.connections_per_minute", "13"}});
  const Document document(rig);
  EXPECT_EQ(document.text("/name"), R"("a \"name\"")");
  EXPECT_EQ(document.text("/description"), "\"words\"");
  EXPECT_EQ(document.text("/contact"), "\"mailto:a@example.org\"");
  EXPECT_EQ(document.text("/pubkey"), '"' + pubkey + '"');
  EXPECT_EQ(document.text("/software"), "\"https://example.org/software\"");
  EXPECT_EQ(document.text("/icon"), "\"https://example.org/icon.png\"");
  EXPECT_EQ(document.text("/banner"), "\"https://example.org/banner.png\"");
  EXPECT_EQ(document.text("/posting_policy"), "\"https://example.org/posting\"");
  EXPECT_EQ(document.text("/privacy_policy"), "\"https://example.org/privacy\"");
  EXPECT_EQ(document.text("/terms_of_service"), "\"https://example.org/terms\"");
  EXPECT_EQ(document.text("/limitation/max_message_length"), "8192");
  EXPECT_EQ(document.text("/limitation/max_event_length"), "4096");
  EXPECT_EQ(document.text("/limitation/max_event_tags"), "7");
  EXPECT_EQ(document.text("/limitation/max_filters"), "3");
  EXPECT_EQ(document.text("/limitation/max_subscriptions"), "4");
  EXPECT_EQ(document.text("/limitation/default_limit"), "5");
  EXPECT_EQ(document.text("/limitation/max_limit"), "6");
  EXPECT_EQ(document.text("/limitation/created_at_upper_limit"), "60");
  EXPECT_EQ(document.text("/limitation/created_at_lower_limit"), "3600");
  EXPECT_EQ(document.text("/limitation/min_pow_difficulty"), "1");
  EXPECT_EQ(document.text("/limitation/auth_required"), "true");
  EXPECT_EQ(document.text("/limitation/restricted_writes"), "true");
  EXPECT_EQ(document.text("/topics"),
            R"({"policy":"open","accept":"any","network_id":"kukuri:dev:","reserved":["lobby","hall"]})");
  EXPECT_EQ(document.text("/rate_limits/events_per_minute"), "11");
  EXPECT_EQ(document.text("/rate_limits/reqs_per_minute"), "12");
  EXPECT_EQ(document.text("/rate_limits/connections_per_minute"), "13");
}

std::size_t limit(const RelayRig& rig, std::string_view name) {
  return std::stoul(Document(rig).text("/limitation/" + std::string(name)));
}

void expect_longest_content(const RelayRig& rig, const Tags& tags, std::string_view beyond) {
  NostrClient client(rig.url());
  const auto alice = SecretKey::generate();
  const auto longest = limit(rig, "max_content_length");
  store_at(client, note(alice, std::string(longest, 'x'), tags));
  client.send(fmt::format(R"(["EVENT",{}])", note(alice, std::string(longest + 1, 'x'), tags).json()));
  EXPECT_THAT(client.receive(), HasSubstr(beyond));
}

TEST(InfoTest, LongestContentIsTakenAndOneCharacterMoreIsNot) {
  const Tags topic{{"t", "kukuri:global"}};
  expect_longest_content(RelayRig(), topic, "invalid: event too large");
  expect_longest_content(RelayRig(kOpen), {}, "invalid: event too large");
  expect_longest_content(RelayRig(Flags{{"relay.message_bytes_max", "4KiB"}}), topic,
                         "invalid: message too long");
}

TEST(InfoTest, ValuesAndTagsAreTakenUpToTheirLimits) {
  const RelayRig rig;
  NostrClient client(rig.url());
  const auto alice = SecretKey::generate();
  const auto tag = [&](std::size_t values) {
    std::vector<std::string> list(values, "x");
    return Tags{list, {"t", "kukuri:global"}};
  };
  store_at(client, note(alice, "", tag(limit(rig, "max_tag_values"))));
  EXPECT_EQ(client.publish(note(alice, "", tag(limit(rig, "max_tag_values") + 1))).text,
            "invalid: too many values in a tag");

  const auto kinds = [](std::size_t count) {
    std::string list = "0";
    for (std::size_t i = 1; i < count; ++i) list += fmt::format(",{}", i);
    return global_and(fmt::format(R"("kinds":[{}])", list));
  };
  EXPECT_EQ(client.stored(kinds(limit(rig, "max_filter_values"))).closed, "");
  EXPECT_EQ(client.stored(kinds(limit(rig, "max_filter_values") + 1)).closed,
            "invalid: too many values in a filter");

  const auto letters = [](std::size_t count) {
    std::string more;
    for (std::size_t i = 1; i < count; ++i) {
      more += fmt::format(R"({}"#{}":["x"])", i > 1 ? "," : "", static_cast<char>('A' + i));
    }
    return global_and(more);
  };
  EXPECT_EQ(client.stored(letters(limit(rig, "max_filter_tags"))).closed, "");
  EXPECT_EQ(client.stored(letters(limit(rig, "max_filter_tags") + 1)).closed,
            "invalid: too many tag filters");
}

TEST(InfoTest, AuthenticationIsRequiredFromItsTimeOn) {
  const auto in_an_hour = std::to_string(unix_now() + 3'600);
  RelayRig rig(
      Flags{{"relay.topic_policy", "open"}, {"auth.mode", "required"}, {"auth.enforce_at", in_an_hour}});
  EXPECT_EQ(Document(rig).text("/limitation/auth_required"), "false");
  EXPECT_EQ(Document(rig).text("/limitation/restricted_writes"), "false");
  rig.clock().shift(std::chrono::seconds(3'601));
  EXPECT_EQ(Document(rig).text("/limitation/auth_required"), "true");
  EXPECT_EQ(Document(rig).text("/limitation/restricted_writes"), "true");
}

TEST(InfoTest, FollowsTheSettingsThatChangeWhileItRuns) {
  RelayRig rig(Flags{{"limits.rates", "on"}});
  rig.change({{"relay.name", "harbour"},
              {"relay.description", "boats"},
              {"relay.contact", "mailto:a@example.org"},
              {"relay.subscriptions_max", "7"},
              {"relay.event_bytes_max", "2KiB"},
              {"auth.mode", "required"},
              {"limits.events_per_minute", "11"}});
  const Document document(rig);
  EXPECT_EQ(document.text("/name"), "\"harbour\"");
  EXPECT_EQ(document.text("/description"), "\"boats\"");
  EXPECT_EQ(document.text("/contact"), "\"mailto:a@example.org\"");
  EXPECT_EQ(document.text("/limitation/max_subscriptions"), "7");
  EXPECT_EQ(document.text("/limitation/max_event_length"), "2048");
  EXPECT_EQ(document.text("/limitation/auth_required"), "true");
  EXPECT_EQ(document.text("/rate_limits/events_per_minute"), "11");
  rig.change({});
  EXPECT_EQ(Document(rig).text("/name"), "\"todoke\"");
  EXPECT_EQ(Document(rig).text("/limitation/auth_required"), "false");
}

}  // namespace
}  // namespace todoke::test

// NIP-11: what the relay says about itself over HTTP.
#include <fmt/format.h>
#include <simdjson.h>

#include "http/rig.hpp"
#include "support.hpp"

namespace todoke::test {
namespace {

using net::test::RawClient;
using net::test::RawResponse;

RawResponse ask(const RelayRig& rig, const std::string& method, const std::string& path,
                const std::string& accept) {
  RawClient http(rig.port());
  auto request =
      fmt::format("{} {} HTTP/1.1\r\nHost: test\r\nOrigin: https://client.example\r\n", method, path);
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
  EXPECT_EQ(response.header("Access-Control-Allow-Headers"), "*");
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
    EXPECT_THAT(response.body, StartsWith("todoke 0.0.0-test"));
    EXPECT_EQ(response.header("Vary"), "Accept");
    expect_cors(response);
  }
}

TEST(InfoTest, DefaultsAreTold) {
  const RelayRig rig;
  const Document document(rig);
  EXPECT_EQ(document.text("/supported_nips"), "[1,9,11,13,40,42,45,67,70]");
  EXPECT_EQ(document.text("/software"), "\"todoke\"");
  EXPECT_EQ(document.text("/version"), "\"0.0.0-test\"");
  EXPECT_EQ(document.text("/limitation/max_message_length"), "131072");
  EXPECT_EQ(document.text("/limitation/max_subscriptions"), "50");
  EXPECT_EQ(document.text("/limitation/max_filters"), "20");
  EXPECT_EQ(document.text("/limitation/max_limit"), "5000");
  EXPECT_EQ(document.text("/limitation/default_limit"), "500");
  EXPECT_EQ(document.text("/limitation/max_subid_length"), "64");
  EXPECT_EQ(document.text("/limitation/max_event_tags"), "2000");
  EXPECT_EQ(document.text("/limitation/max_content_length"), "65536");
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
  for (const auto* absent : {"/description", "/pubkey", "/contact", "/rate_limits"})
    EXPECT_FALSE(document.has(absent));
}

TEST(InfoTest, EverythingThatIsConfiguredIsTold) {
  const auto pubkey = std::string(64, 'a');
  const RelayRig rig(Flags{{"relay.name", "a \"name\""},
                           {"relay.description", "words"},
                           {"relay.contact", "mailto:a@example.org"},
                           {"relay.pubkey", pubkey},
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
  EXPECT_EQ(document.text("/limitation/max_message_length"), "8192");
  EXPECT_EQ(document.text("/limitation/max_content_length"), "4096");
  EXPECT_EQ(document.text("/limitation/max_event_tags"), "7");
  EXPECT_EQ(document.text("/limitation/max_filters"), "3");
  EXPECT_EQ(document.text("/limitation/max_subscriptions"), "4");
  EXPECT_EQ(document.text("/limitation/default_limit"), "5");
  EXPECT_EQ(document.text("/limitation/max_limit"), "6");
  EXPECT_EQ(document.text("/limitation/created_at_upper_limit"), "60");
  EXPECT_EQ(document.text("/limitation/created_at_lower_limit"), "3600");
  EXPECT_EQ(document.text("/limitation/min_pow_difficulty"), "1");
  EXPECT_EQ(document.text("/limitation/auth_required"), "true");
  EXPECT_EQ(document.text("/limitation/restricted_writes"), "false");
  EXPECT_EQ(document.text("/topics"),
            R"({"policy":"open","accept":"any","network_id":"kukuri:dev:","reserved":["lobby","hall"]})");
  EXPECT_EQ(document.text("/rate_limits/events_per_minute"), "11");
  EXPECT_EQ(document.text("/rate_limits/reqs_per_minute"), "12");
  EXPECT_EQ(document.text("/rate_limits/connections_per_minute"), "13");
}

}  // namespace
}  // namespace todoke::test

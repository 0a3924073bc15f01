#include "nostr/http_auth.hpp"

#include "base/base64.hpp"
#include "base/sha256.hpp"
#include "nostr/test_support.hpp"

namespace todoke::nostr {
namespace {

const AuthTarget kServer{{"api.example"}};
const std::string kUrl = "https://api.example/api/v1/search?topic=kukuri%3Aglobal&q=a";
const std::string kTarget = "/api/v1/search?topic=kukuri%3Aglobal&q=a";

std::string header_of(const Event& event) {
  return "Nostr " + to_base64(as_bytes(event.json()));
}

Event signed_request(test::Tags tags, Kind kind = kHttpAuth, std::int64_t created_at = test::kNow) {
  return test::event_with(kind, std::move(tags), "", created_at);
}

std::string refusal_of(const std::string& header, const HttpAuthRequest& request = {"GET", "", kTarget}) {
  const auto event =
      read_http_auth(header, request, kServer, std::chrono::sys_seconds(std::chrono::seconds(test::kNow)));
  return event ? "" : event.error().message;
}

TEST(HttpAuth, TakesARequestThatIsSignedForThisServer) {
  EXPECT_EQ(refusal_of(header_of(signed_request({{"u", kUrl}, {"method", "GET"}}))), "");
  EXPECT_EQ(refusal_of(header_of(signed_request({{"u", kUrl + "#part"}, {"method", "get"}}))), "");
  EXPECT_EQ(
      refusal_of(header_of(signed_request({{"u", "wss://api.example:8080" + kTarget}, {"method", "GET"}}))),
      "");
}

TEST(HttpAuth, TellsWhatIsWrong) {
  const test::Tags good{{"u", kUrl}, {"method", "GET"}};
  EXPECT_EQ(refusal_of(""), "sign the request as NIP-98 says");
  EXPECT_EQ(refusal_of("Bearer abc"), "sign the request as NIP-98 says");
  EXPECT_EQ(refusal_of("Nostr ***"), "the Authorization header is no base64");
  EXPECT_EQ(refusal_of("Nostr"), "invalid: message is not JSON");
  EXPECT_EQ(refusal_of(header_of(signed_request(good, 1))), "kind must be 27235");
  EXPECT_EQ(refusal_of(header_of(signed_request(good, kHttpAuth, test::kNow - 61))),
            "created_at out of range");
  EXPECT_EQ(refusal_of(header_of(signed_request(good, kHttpAuth, test::kNow + 61))),
            "created_at out of range");
  EXPECT_EQ(
      refusal_of(header_of(signed_request({{"u", "https://evil.example" + kTarget}, {"method", "GET"}}))),
      "u names another relay");
  EXPECT_EQ(
      refusal_of(header_of(signed_request({{"u", "https://api.example/api/v1/search"}, {"method", "GET"}}))),
      "u names another path or query");
  EXPECT_EQ(refusal_of(header_of(signed_request({{"u", kUrl}, {"method", "POST"}}))), "method must be GET");
  EXPECT_EQ(refusal_of(header_of(signed_request({{"u", kUrl}}))), "method must be GET");
}

TEST(HttpAuth, APathThatDoesNotCountMayBeAny) {
  const auto header = header_of(signed_request({{"u", "wss://api.example"}, {"method", "POST"}}));
  EXPECT_EQ(refusal_of(header, {"POST", "", std::nullopt}), "");
  EXPECT_EQ(refusal_of(header, {"POST", "", "/"}), "");
  EXPECT_EQ(refusal_of(header, {"POST", "", "/other"}), "u names another path or query");
}

TEST(HttpAuth, ABodyHasToBeSignedToo) {
  const auto with_payload = [](const std::string& payload) {
    return header_of(signed_request({{"u", kUrl}, {"method", "POST"}, {"payload", payload}}));
  };
  const HttpAuthRequest request{"POST", "{}", kTarget};
  EXPECT_EQ(refusal_of(with_payload(to_hex(sha256({"{}"}))), request), "");
  EXPECT_EQ(refusal_of(with_payload(to_hex(sha256({"[]"}))), request), "payload is not the hash of the body");
  EXPECT_EQ(refusal_of(header_of(signed_request({{"u", kUrl}, {"method", "POST"}})), request),
            "payload is not the hash of the body");
  EXPECT_EQ(refusal_of(with_payload(to_hex(sha256({"{}"}))), {"POST", "", kTarget}),
            "payload is not the hash of the body");
}

}  // namespace
}  // namespace todoke::nostr

// NIP-86: operators ban over HTTP, with requests that they sign (NIP-98).
#include <fmt/format.h>

#include "base/base64.hpp"
#include "base/bytes.hpp"
#include "base/sha256.hpp"
#include "harness/http_rig.hpp"
#include "nostr/http_auth.hpp"
#include "support.hpp"

namespace todoke::test {
namespace {

using net::test::RawClient;
using net::test::RawResponse;

std::string base64_of(const Event& event) {
  return to_base64(as_bytes(event.json()));
}

class ManagementTest : public testing::Test {
 protected:
  // What an operator's client signs for the body.
  [[nodiscard]] Event signature(const SecretKey& key, const std::string& body, Tags more = {},
                                std::optional<std::int64_t> created_at = {}) const {
    Tags tags{{"u", "https://relay.example.org/"}, {"method", "POST"}, {"payload", to_hex(sha256({body}))}};
    if (!more.empty()) tags = std::move(more);
    return note(key, "", std::move(tags), nostr::kHttpAuth, created_at);
  }
  RawResponse send(const std::string& body, const std::string& authorization,
                   const std::string& type = "application/nostr+json+rpc", const std::string& path = "/") {
    RawClient http(rig.port());
    auto request =
        fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {}\r\nContent-Length: {}\r\n", path,
                    type, body.size());
    if (!authorization.empty()) request += "Authorization: " + authorization + "\r\n";
    http.send(request + "\r\n" + body);
    return http.read_response();
  }
  RawResponse signed_by(const SecretKey& key, const std::string& body) {
    return send(body, "Nostr " + base64_of(signature(key, body)));
  }
  std::string call(const std::string& method, const std::string& params = "") {
    const auto response = signed_by(admin, fmt::format(R"({{"method":"{}","params":[{}]}})", method, params));
    EXPECT_EQ(response.status, 200) << response.body;
    EXPECT_EQ(response.header("Content-Type"), "application/nostr+json+rpc");
    return response.body;
  }

  SecretKey admin = SecretKey::generate();
  SecretKey alice = SecretKey::generate();
  RelayRig rig{Flags{{"relay.public_url", "wss://relay.example.org"}, {"relay.admins", hex_of(admin)}}};
  NostrClient client{rig.url()};
};

constexpr auto* kDone = R"({"result":true})";

TEST_F(ManagementTest, AnAuthorIsBannedListedAndUnbanned) {
  EXPECT_EQ(call("banpubkey", fmt::format(R"("{}","spam")", hex_of(alice))), kDone);
  EXPECT_TRUE(rig.await_metric(R"(todoke_blocks{kind="pubkey"})", 1));
  EXPECT_EQ(client.publish(global_note(alice, "")).text, "blocked: author not taken here");
  EXPECT_EQ(call("listbannedpubkeys"),
            fmt::format(R"({{"result":[{{"pubkey":"{}","reason":"spam"}}]}})", hex_of(alice)));
  EXPECT_EQ(rig.value("SELECT actor FROM cn_admin.audit"), "nip86:" + hex_of(admin));
  EXPECT_EQ(call("unbanpubkey", fmt::format(R"("{}")", hex_of(alice))), kDone);
  EXPECT_TRUE(rig.await_metric(R"(todoke_blocks{kind="pubkey"})", 0));
  store_at(client, global_note(alice, ""));
  EXPECT_EQ(call("listbannedpubkeys"), R"({"result":[]})");
}

TEST_F(ManagementTest, ABannedEventIsGone) {
  const auto event = global_note(alice, "gone");
  store_at(client, event);
  EXPECT_EQ(call("banevent", fmt::format(R"("{}")", hex_of(event))), kDone);
  EXPECT_TRUE(await([&] { return client.stored(kGlobal).ids.empty(); }));
  EXPECT_EQ(call("listbannedevents"),
            fmt::format(R"({{"result":[{{"id":"{}","reason":""}}]}})", hex_of(event)));
  EXPECT_EQ(call("allowevent", fmt::format(R"("{}")", hex_of(event))), kDone);
}

TEST_F(ManagementTest, AnAddressIsBlockedAndUnblocked) {
  EXPECT_EQ(call("blockip", R"("192.0.2.0/24","noise")"), kDone);
  EXPECT_EQ(call("listblockedips"), R"({"result":[{"ip":"192.0.2.0/24","reason":"noise"}]})");
  EXPECT_EQ(call("unblockip", R"("192.0.2.0/24")"), kDone);
  EXPECT_THAT(call("unblockip", R"("192.0.2.0/24")"), HasSubstr("is not blocked"));
}

TEST_F(ManagementTest, TellsWhatItSupportsAndWhatIsWrong) {
  EXPECT_EQ(call("supportedmethods"),
            R"({"result":["supportedmethods","banpubkey","unbanpubkey","listbannedpubkeys","banevent",)"
            R"("allowevent","listbannedevents","blockip","unblockip","listblockedips"]})");
  EXPECT_THAT(call("changerelayname", R"("x")"), HasSubstr(R"("error":"unknown method)"));
  EXPECT_THAT(call("banpubkey"), HasSubstr("params[0] must be the pubkey"));
  EXPECT_THAT(call("banpubkey", R"("xyz")"), HasSubstr("is no public key"));
  EXPECT_THAT(call("banpubkey", R"(7)"), HasSubstr("params[0] must be the pubkey"));
  EXPECT_THAT(call("banpubkey", fmt::format(R"("{}","{}")", hex_of(alice), std::string(1025, 'x'))),
              HasSubstr("too long"));
  for (const auto* body : {"", "nonsense", "[]", R"({"method":7})"}) {
    const auto response = signed_by(admin, body);
    EXPECT_THAT(response.body, HasSubstr(R"("error":)")) << body;
  }
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.blocks"), "0");
}

TEST_F(ManagementTest, OnlyWhatAnAdminHasSignedForThisBodyIsCarriedOut) {
  const auto body = fmt::format(R"({{"method":"banpubkey","params":["{}"]}})", hex_of(alice));
  const auto with = [&](const Event& event) { return send(body, "Nostr " + base64_of(event)); };
  const auto expect_refused = [&](const RawResponse& response, const std::string& why) {
    EXPECT_EQ(response.status, 401) << why;
    EXPECT_THAT(response.body, HasSubstr(why));
  };
  const auto payload = to_hex(sha256({body}));
  const std::string here = "https://relay.example.org/";
  expect_refused(send(body, ""), "sign the request as NIP-98 says");
  expect_refused(send(body, "Bearer abc"), "sign the request as NIP-98 says");
  expect_refused(send(body, "Nostr ***"), "no base64");
  expect_refused(send(body, "Nostr e30="), "auth-required: ");
  expect_refused(with(signature(alice, body)), "not one of relay.admins");
  expect_refused(with(signature(admin, body, {}, unix_now() - 120)), "created_at out of range");
  expect_refused(with(signature(admin, body, {}, unix_now() + 120)), "created_at out of range");
  expect_refused(with(signature(admin, body + " ")), "payload is not the hash of the body");
  expect_refused(with(signature(admin, body, {{"u", here}, {"method", "POST"}})), "payload");
  expect_refused(with(signature(admin, body, {{"u", here}, {"method", "GET"}, {"payload", payload}})),
                 "method");
  expect_refused(with(signature(admin, body,
                                {{"u", "https://evil.example/"}, {"method", "POST"}, {"payload", payload}})),
                 "u names another relay");
  expect_refused(with(note(admin, "", {{"u", here}, {"method", "POST"}, {"payload", payload}}, 1)),
                 "kind must be");
  auto forged = std::string(signature(admin, body).json());
  const auto sig = forged.find("\"sig\":\"") + 7;
  forged[sig] = forged[sig] == '0' ? '1' : '0';
  expect_refused(send(body, "Nostr " + to_base64(as_bytes(forged))), "bad signature");
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.blocks"), "0");
  EXPECT_EQ(send(body, "", "application/json").status, 415);
  EXPECT_EQ(send(std::string(70'000, 'x'), "").status, 413);
  EXPECT_EQ(
      send(body, "Nostr " + base64_of(signature(admin, body)), "application/nostr+json+rpc", "/relay").body,
      kDone);
}

TEST(ManagementOffTest, WithoutAdminsNobodyIsLetIn) {
  const RelayRig rig;
  RawClient http(rig.port());
  http.send(
      "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/nostr+json+rpc\r\nContent-Length: "
      "2\r\n\r\n{}");
  const auto response = http.read_response();
  EXPECT_EQ(response.status, 403);
  EXPECT_THAT(response.body, HasSubstr("relay.admins names nobody"));
}

// Live: the next request goes by it.
TEST(ManagementOffTest, AdminsAreALiveKeyThatIsChecked) {
  RelayRig rig;
  EXPECT_NO_THROW(rig.change({{"relay.admins", std::string(64, 'a')}}));
  RawClient http(rig.port());
  http.send(
      "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/nostr+json+rpc\r\nContent-Length: "
      "2\r\n\r\n{}");
  EXPECT_EQ(http.read_response().status, 401);
}

}  // namespace
}  // namespace todoke::test

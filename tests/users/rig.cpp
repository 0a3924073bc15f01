#include "users/rig.hpp"

#include <chrono>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/base64.hpp"
#include "base/bytes.hpp"
#include "base/json_escape.hpp"
#include "base/json_writer.hpp"
#include "base/sha256.hpp"
#include "nostr/http_auth.hpp"

namespace todoke::test {
namespace {

// Read when the node starts; the folder goes with the process's others of its kind.
std::string secret_file() {
  static const std::string kFolder = [] {
    auto folder = std::filesystem::temp_directory_path() / ("todoke-users-" + random_hex(8));
    std::filesystem::create_directory(folder);
    return folder.string();
  }();
  return kFolder + "/users.key";
}

// What the test says wins.
Flags with_defaults(const Flags& flags) {
  Flags all{{"users.secret_file", secret_file()}, {"relay.public_url", fmt::format("wss://{}", kHost)}};
  all.insert(all.end(), flags.begin(), flags.end());
  return all;
}

std::string event_json(const SecretKey& key, nostr::Kind kind, std::vector<std::vector<std::string>> tags,
                       std::optional<std::int64_t> created_at) {
  const nostr::EventDraft draft{created_at.value_or(seconds_now()), kind, std::move(tags), ""};
  return std::string(nostr::sign_event(draft, key).json());
}

}  // namespace

std::int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

UsersRig::UsersRig(const Flags& flags, std::vector<std::string> roles)
    : NodeRig({.roles = std::move(roles), .flags = with_defaults(flags)}) {}

RawResponse UsersRig::ask(std::string_view method, const std::string& path, const std::string& body,
                          const std::string& more) const {
  auto request = fmt::format("{} /api/v1{} HTTP/1.1\r\nHost: localhost\r\n{}", method, path, more);
  if (!body.empty()) request += fmt::format("Content-Length: {}\r\n", body.size());
  if (!body.empty() && more.find("Content-Type") == std::string::npos)
    request += "Content-Type: application/json\r\n";
  return net::test::RawClient(port()).ask(request + "\r\n" + body);
}

RawResponse UsersRig::get(const std::string& path, const std::string& more) const {
  return ask("GET", path, "", more);
}

RawResponse UsersRig::post(const std::string& path, const std::string& body, const std::string& more) const {
  return ask("POST", path, body, more);
}

std::string UsersRig::log_in(const SecretKey& key) const {
  const auto given = post("/auth/challenge", fmt::format(R"({{"pubkey":"{}"}})", key.pubkey().hex()));
  EXPECT_EQ(given.status, 200) << given.body;
  const auto token = post("/auth/verify", verify_body(auth_event(key, member(given.body, "challenge"))));
  EXPECT_EQ(token.status, 200) << token.body;
  return fmt::format("Authorization: Bearer {}\r\n", member(token.body, "access_token"));
}

void UsersRig::make_policies_current(const std::string& version) const {
  for (const auto* type : {"terms", "privacy"}) {
    static_cast<void>(
        sql(fmt::format("INSERT INTO cn_admin.policies (type, version, title, content, status, published_at) "
                        "VALUES ('{0}', '{1}', 'Title of {0}', 'Text of {0} {1}', 'published', now());"
                        "INSERT INTO cn_admin.current_policies (type, version, effective_at) VALUES ('{0}', "
                        "'{1}', now() - interval '1 s') "
                        "ON CONFLICT (type) DO UPDATE SET version = EXCLUDED.version",
                        type, version)));
  }
}

std::string UsersRig::approve(const std::string& request_id) const {
  return value(fmt::format(
      "SELECT coalesce(problem, '') FROM cn_user.approve_request('{}', NULL, 'operator', 1000)", request_id));
}

void UsersRig::subscribe(const std::string& authorization, const std::string& topic,
                         const std::string& services) const {
  const auto asked =
      post("/topic-subscription-requests",
           fmt::format(R"({{"topic_id":"{}","requested_services":[{}]}})", topic, services), authorization);
  ASSERT_EQ(asked.status, 201) << asked.body;
  ASSERT_EQ(approve(member(asked.body, "request_id")), "");
}

std::string auth_event(const SecretKey& key, const std::string& challenge, const std::string& relay,
                       std::optional<std::int64_t> created_at) {
  return event_json(key, nostr::kAuth, {{"relay", relay}, {"challenge", challenge}}, created_at);
}

std::string verify_body(const std::string& event_json) {
  return fmt::format(R"({{"auth_event_json":{}}})", event_json);
}

std::string http_auth(const SecretKey& key, std::string_view method, const std::string& target,
                      const std::string& body, std::optional<std::int64_t> created_at) {
  std::vector<std::vector<std::string>> tags{{"u", fmt::format("https://{}{}", kHost, target)},
                                             {"method", std::string(method)}};
  if (!body.empty()) tags.push_back({"payload", to_hex(sha256({body}))});
  const auto event = event_json(key, nostr::kHttpAuth, std::move(tags), created_at);
  return fmt::format("Authorization: Nostr {}\r\n", to_base64(as_bytes(event)));
}

}  // namespace todoke::test

// Every route of the User API, from the routes themselves: what it asks for, and what the document says.
#include "users/routes.hpp"

#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "users/door.hpp"
#include "users/rig.hpp"

namespace todoke::test {
namespace {

using api::In;
using api::Needed;
using api::Route;
using api::Schema;
using api::SchemaType;

// The routes as data; their handlers are never called.
const users::Routes& routes() {
  static const users::Routes kRoutes = users::all_routes(nullptr, nullptr);
  return kRoutes;
}

// Texts that a schema may take, as JSON.
std::string good_text(const Schema& schema) {
  if (!schema.choices.empty()) return std::string(schema.choices.front());
  if (schema.format == &api::kUuid) return "01234567-89ab-cdef-0123-456789abcdef";
  if (schema.format == &api::kHexKey) return std::string(64, 'a');
  if (schema.format == &api::kTimestamp) return "2026-01-31T12:00:00Z";
  if (schema.format == &api::kCursor) return "abc";
  if (schema.format != nullptr && schema.format->matches("en")) return "en";
  if (schema.format != nullptr) return "event:" + std::string(64, 'a');
  return kTopicA;
}

std::string good_json(const Schema& schema) {
  switch (schema.type) {
    case SchemaType::text:
      return fmt::format("\"{}\"", good_text(schema));
    case SchemaType::integer:
      return std::to_string(schema.least);
    case SchemaType::list:
      return fmt::format("[{}]", good_json(schema.parts.front()));
    case SchemaType::object: {
      std::string members;
      for (const auto& member : schema.members) {
        const bool is_first_choice = !schema.one_of.empty() && member.name == schema.one_of.front();
        if (member.needed == Needed::optional && !is_first_choice) continue;
        members +=
            fmt::format("{}\"{}\":{}", members.empty() ? "" : ",", member.name, good_json(member.schema));
      }
      return "{" + members + "}";
    }
    case SchemaType::either:
      return good_json(schema.parts.front());
    default:
      return "{}";
  }
}

// Values that a schema refuses.
std::vector<std::string> bad_jsons(const Schema& schema) {
  std::vector<std::string> bad{"null"};
  if (schema.type != SchemaType::boolean) bad.emplace_back("true");
  if (schema.type != SchemaType::integer && schema.type != SchemaType::number) bad.emplace_back("7");
  if (schema.type == SchemaType::text) {
    if (schema.format != nullptr || !schema.choices.empty()) bad.emplace_back("\"no such thing!\"");
    if (schema.least > 0) bad.emplace_back("\"\"");
    if (schema.format == nullptr && schema.choices.empty() && schema.most < 10'000)
      bad.push_back(fmt::format("\"{}\"", std::string(static_cast<std::size_t>(schema.most) + 1, 'x')));
  }
  if (schema.type == SchemaType::list) bad.emplace_back("[{\"no\":\"such\"}]");
  return bad;
}

std::string path_with(const Route& route, std::string_view bad_parameter = "", const std::string& bad = "") {
  std::string path(route.path);
  std::string query;
  for (const auto& parameter : route.parameters) {
    const auto value = parameter.name == bad_parameter                ? bad
                       : parameter.schema.type == SchemaType::integer ? std::to_string(parameter.schema.least)
                                                                      : good_text(parameter.schema);
    if (parameter.in == In::path) {
      const auto place = fmt::format("{{{}}}", parameter.name);
      path.replace(path.find(place), place.size(), value);
    } else if (parameter.needed == Needed::always || parameter.name == bad_parameter) {
      query += fmt::format("{}{}={}", query.empty() ? "?" : "&", parameter.name, value);
    }
  }
  return path + query;
}

RawResponse ask(const UsersRig& rig, const Route& route, const std::string& path, const std::string& body,
                const std::string& more) {
  const bool has_length = !body.empty() || route.method == "GET";
  return rig.ask(route.method, path, body, more + (has_length ? "" : "Content-Length: 0\r\n"));
}

std::string body_of(const Route& route) {
  return route.body ? good_json(*route.body) : "";
}

bool is_protected(const Route& route) {
  return !route.access->schemes.empty();
}

class UserRoutesTest : public testing::Test {
 protected:
  static std::string name_of(const Route& route) { return fmt::format("{} {}", route.method, route.path); }

  UsersRig rig;
  SecretKey alice = SecretKey::generate();
};

TEST_F(UserRoutesTest, EveryProtectedRouteRefusesWhatProvesNobody) {
  const auto token = rig.log_in(alice);
  auto forged = token;
  forged[forged.size() - 8] = forged[forged.size() - 8] == 'A' ? 'B' : 'A';
  for (const auto& route : routes()) {
    if (!is_protected(route)) continue;
    const auto path = path_with(route);
    const auto with = [&](const std::string& authorization) {
      return code(ask(rig, route, path, body_of(route), authorization));
    };
    EXPECT_EQ(with(""), "401 AUTH_REQUIRED") << name_of(route);
    EXPECT_EQ(with(forged), "401 INVALID_TOKEN") << name_of(route);
    EXPECT_EQ(with(http_auth(alice, route.method, "/api/v1/elsewhere", body_of(route))), "401 AUTH_FAILED")
        << name_of(route);
    EXPECT_EQ(with(http_auth(alice, route.method, "/api/v1" + path, body_of(route), seconds_now() - 120)),
              "401 AUTH_FAILED")
        << name_of(route);
  }
  rig.clock().shift(std::chrono::hours(1));
  for (const auto& route : routes()) {
    if (!is_protected(route)) continue;
    EXPECT_EQ(code(ask(rig, route, path_with(route), body_of(route), token)), "401 INVALID_TOKEN")
        << name_of(route);
  }
}

TEST_F(UserRoutesTest, ADisabledAccountGetsNothingAndOneWithoutConsentNothingThatNeedsIt) {
  const auto token = rig.log_in(alice);
  rig.make_policies_current("1");
  for (const auto& route : routes()) {
    if (route.access != &users::access::kMember) continue;
    EXPECT_EQ(code(ask(rig, route, path_with(route), body_of(route), token)), "428 CONSENT_REQUIRED")
        << name_of(route);
  }
  rig.sql("UPDATE cn_user.accounts SET status = 'disabled'");
  for (const auto& route : routes()) {
    if (!is_protected(route)) continue;
    EXPECT_EQ(code(ask(rig, route, path_with(route), body_of(route), token)), "403 ACCOUNT_DISABLED")
        << name_of(route);
  }
}

TEST_F(UserRoutesTest, EveryFieldOfEveryBodyIsChecked) {
  const auto token = rig.log_in(alice);
  for (const auto& route : routes()) {
    if (!route.body) continue;
    const auto path = path_with(route);
    const auto expect_refused = [&](const std::string& body, std::string_view field) {
      const auto response = ask(rig, route, path, body, token);
      EXPECT_EQ(code(response), "422 VALIDATION_ERROR") << name_of(route) << " " << body << response.body;
      EXPECT_THAT(member(response.body, "details.field"), testing::StartsWith(std::string(field)))
          << name_of(route) << " " << body;
    };
    expect_refused("nonsense", "body");
    expect_refused("[]", "body");
    auto good = good_json(*route.body);
    expect_refused(good.substr(0, good.size() - 1) + R"(,"nobody_knows":1})", "nobody_knows");
    for (const auto& member : route.body->members) {
      for (const auto& bad : bad_jsons(member.schema))
        expect_refused(fmt::format(R"({{"{}":{}}})", member.name, bad), "");
    }
    EXPECT_EQ(rig.ask(route.method, path, good, token + "Content-Type: text/plain\r\n").status, 415)
        << name_of(route);
  }
}

TEST_F(UserRoutesTest, EveryParameterIsChecked) {
  const auto token = rig.log_in(alice);
  for (const auto& route : routes()) {
    for (const auto& parameter : route.parameters) {
      const bool is_free_text = parameter.schema.type == SchemaType::text &&
                                parameter.schema.format == nullptr && parameter.schema.choices.empty();
      const auto bad = is_free_text ? std::string(2'000, 'x') : std::string("no%20such");
      const auto response = ask(rig, route, path_with(route, parameter.name, bad), body_of(route), token);
      EXPECT_EQ(code(response), "422 VALIDATION_ERROR") << name_of(route) << " " << parameter.name;
      EXPECT_EQ(member(response.body, "details.field"), parameter.name) << name_of(route);
    }
    const auto path = path_with(route);
    const auto unknown = path + (path.find('?') == std::string::npos ? "?" : "&") + "nobody_knows=1";
    EXPECT_EQ(code(ask(rig, route, unknown, body_of(route), token)), "422 VALIDATION_ERROR")
        << name_of(route);
  }
}

TEST_F(UserRoutesTest, TheDocumentNamesEveryRouteAndTheNodeHasEveryRouteOfTheDocument) {
  const auto document = rig.get("/openapi.json").body;
  EXPECT_EQ(net::test::RawClient(rig.port()).ask(net::test::get("/v1/openapi.json")).body, document);
  std::set<std::string> paths;
  for (const auto& route : routes()) paths.insert(std::string(route.path));
  // As the document writes them.
  std::size_t found = 0;
  for (auto at = document.find("\":{\""); at != std::string::npos; at = document.find("\":{\"", at + 1)) {
    const auto begin = document.rfind('"', at - 1) + 1;
    const auto key = document.substr(begin, at - begin);
    if (key.front() != '/') continue;
    EXPECT_TRUE(paths.contains(key)) << key;
    ++found;
  }
  EXPECT_EQ(found, paths.size());
  for (const auto& route : routes()) {
    EXPECT_NE(document.find(fmt::format(R"("operationId":"{}")", route.name)), std::string::npos)
        << route.name;
    const auto response = ask(rig, route, path_with(route), "", "");
    EXPECT_THAT(response.status, testing::AllOf(testing::Ne(405), testing::Ne(421), testing::Ne(500)))
        << name_of(route);
    if (response.body.empty()) continue;  // nothing new to tell
    EXPECT_NE(member(response.body, "message"), "no such route") << name_of(route);
  }
}

TEST_F(UserRoutesTest, NoAnswerHasTheWordsOfTheDatabase) {
  const auto token = rig.log_in(alice);
  rig.sql("ALTER TABLE cn_user.topic_subscriptions RENAME TO hidden");
  const auto response = rig.get("/topic-subscriptions", token);
  EXPECT_EQ(code(response), "503 UNAVAILABLE");
  EXPECT_EQ(response.body.find("relation"), std::string::npos);
}

}  // namespace
}  // namespace todoke::test

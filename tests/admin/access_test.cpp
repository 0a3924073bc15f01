// Every route, by the data that it is made of: who may pass, and what is refused of what comes in.
#include <set>

#include <boost/asio/io_context.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "admin/rig.hpp"
#include "admin/routes.hpp"
#include "app/keys.hpp"
#include "base/json_writer.hpp"

namespace todoke::test {
namespace {

using admin::kAnybody;
using admin::kOperators;
using admin::kViewers;
using api::Route;
using api::Schema;
using api::SchemaType;

// The routes as data. Nobody calls their handlers.
class RouteData {
 public:
  explicit RouteData(const std::string& url)
      : live_(Config(app::schema())),
        pool_(pool_options(url), clock_, registry_),
        listener_(io_.get_executor(), {}, registry_),
        desk_{live_, clock_, io_.get_executor(), pool_, listener_, health_, registry_, true},
        login_(desk_),
        routes_(admin::all_routes(desk_, login_)) {}
  ~RouteData() { pool_.close(); }

  [[nodiscard]] const std::vector<Route>& all() const { return routes_; }

 private:
  static pg::PoolOptions pool_options(const std::string& url) {
    pg::PoolOptions options;
    options.connect.url = url;
    return options;
  }

  asio::io_context io_;
  LiveConfig live_;
  SystemClock clock_;
  metrics::Registry registry_;
  HealthBoard health_;
  pg::Pool pool_;
  pg::Listener listener_;
  admin::Desk desk_;
  admin::Login login_;
  std::vector<Route> routes_;
};

// A value that the schema takes.
std::string good_value(const Schema& schema) {
  switch (schema.type) {
    case SchemaType::text:
      if (!schema.choices.empty()) return fmt::format("\"{}\"", schema.choices.front());
      if (schema.format == nullptr) return "\"a\"";
      for (const std::string_view text :
           {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "0189ab00-0000-0000-0000-000000000000", "2026-01-31T12:00:00Z", "2026-01-31", "en", "free"}) {
        if (schema.format->matches(text)) return fmt::format("\"{}\"", text);
      }
      return "\"a\"";
    case SchemaType::integer:
      return std::to_string(std::max<std::int64_t>(schema.least, 1));
    case SchemaType::boolean:
      return "true";
    case SchemaType::object: {
      JsonWriter json;
      json.begin_object();
      for (const auto& member : schema.members) {
        if (member.needed == api::Needed::always ||
            (!schema.one_of.empty() && member.name == schema.one_of.front()))
          json.key(member.name).raw(good_value(member.schema));
      }
      json.end_object();
      return std::move(json).text();
    }
    default:
      return "{}";
  }
}

// The same body with one member replaced; no value: left out.
std::string body_with(const Schema& schema, std::string_view name, const std::optional<std::string>& value) {
  JsonWriter json;
  json.begin_object();
  bool was_there = false;
  for (const auto& member : schema.members) {
    const bool is_it = member.name == name;
    was_there = was_there || is_it;
    if (is_it && value) json.key(name).raw(*value);
    if (!is_it && member.needed == api::Needed::always) json.key(member.name).raw(good_value(member.schema));
  }
  if (!was_there && value) json.key(name).raw(*value);
  json.end_object();
  return std::move(json).text();
}

std::string unquoted(std::string text) {
  return text.starts_with("\"") ? text.substr(1, text.size() - 2) : text;
}

std::string path_of(const Route& route, std::string_view bad = {}) {
  std::string path(route.path);
  for (const auto& parameter : route.parameters) {
    if (parameter.in != api::In::path) continue;
    const auto name = fmt::format("{{{}}}", parameter.name);
    const auto value = parameter.name == bad ? std::string("%21%21") : unquoted(good_value(parameter.schema));
    path.replace(path.find(name), name.size(), value);
  }
  return path;
}

std::string body_of(const Route& route) {
  return route.body ? good_value(*route.body) : std::string();
}

class AdminAccessTest : public testing::Test {
 protected:
  AdminAnswer ask(const Route& route, const std::string& headers) const {
    return rig.ask(std::string(route.method), path_of(route), body_of(route), headers);
  }

  AdminRig rig;
  RouteData routes{rig.node.database()->url()};
};

TEST_F(AdminAccessTest, EveryRouteButTheLoginAsksWhoCalls) {
  rig.node.sql(
      "INSERT INTO cn_admin.admin_tokens (token_id, token_hash, name, role, expires_at, revoked_at) VALUES"
      " ('aaaaaaaaaaaaaaaa', encode(sha256('expired'), 'hex'), 'a', 'operator', now() - interval '1 s', "
      "NULL),"
      " ('bbbbbbbbbbbbbbbb', encode(sha256('revoked'), 'hex'), 'b', 'operator', NULL, now())");
  for (const auto& route : routes.all()) {
    SCOPED_TRACE(route.name);
    if (route.access == &kAnybody) continue;
    for (const std::string headers :
         {"", "Authorization: Bearer forged\r\n", "Authorization: Bearer expired\r\n",
          "Authorization: Bearer revoked\r\n", "Authorization: Basic YTpi\r\n",
          "Cookie: todoke_session=forged\r\n", "Cookie: other=1\r\n"}) {
      const auto answer = ask(route, headers);
      EXPECT_EQ(answer.status, 401) << headers << answer.body;
      EXPECT_EQ(json_text(answer.body, "code"), "UNAUTHORIZED");
    }
  }
}

TEST_F(AdminAccessTest, AViewerChangesNothingAndAModeratorOnlyWhatIsTheirs) {
  const auto viewer = rig.token_line("viewer");
  const auto moderator = rig.token_line("moderator");
  for (const auto& route : routes.all()) {
    SCOPED_TRACE(route.name);
    if (route.access == &kAnybody || route.access == &kViewers) continue;
    EXPECT_EQ(json_text(ask(route, viewer).body, "code"), "FORBIDDEN");
    if (route.access == &kOperators) {
      EXPECT_EQ(json_text(ask(route, moderator).body, "code"), "FORBIDDEN");
    }
  }
  EXPECT_EQ(rig.node.value("SELECT count(*) FROM cn_admin.audit WHERE actor LIKE 'token:test%'"), "0");
}

TEST_F(AdminAccessTest, ReadsOfWhatIsNotThereAreAnsweredWithoutAFault) {
  const auto viewer = rig.token_line("viewer");
  for (const auto& route : routes.all()) {
    SCOPED_TRACE(route.name);
    if (route.method != "GET" || route.name == "streamEvents") continue;
    const auto answer = ask(route, viewer);
    EXPECT_TRUE(answer.status == 200 || answer.status == 404) << answer.status << answer.body;
  }
}

TEST_F(AdminAccessTest, EveryChangeOfWhatIsNotThereIsAnsweredAsDescribed) {
  const auto token = rig.token_line("operator");
  for (const auto& route : routes.all()) {
    SCOPED_TRACE(route.name);
    if (route.method == "GET" || route.access == &kAnybody) continue;
    const auto answer = ask(route, token);
    std::set<int> described{404, 409, 422};
    for (const auto& success : route.answers) described.insert(success.status);
    EXPECT_TRUE(described.contains(answer.status)) << answer.status << answer.body;
  }
}

TEST_F(AdminAccessTest, EveryMemberOfEveryBodyIsChecked) {
  const auto token = rig.token_line("operator");
  for (const auto& route : routes.all()) {
    if (!route.body || route.access == &kAnybody) continue;
    const auto send = [&](const std::string& body) {
      return rig.ask(std::string(route.method), path_of(route), body, token);
    };
    for (const auto& member : route.body->members) {
      SCOPED_TRACE(fmt::format("{} {}", route.name, member.name));
      const auto answer = send(body_with(*route.body, member.name, "[[1.5]]"));
      EXPECT_EQ(answer.status, 422) << answer.body;
      EXPECT_EQ(json_text(answer.body, "field"), member.name);
      if (member.needed != api::Needed::always) continue;
      EXPECT_EQ(json_text(send(body_with(*route.body, member.name, std::nullopt)).body, "field"),
                member.name);
    }
    SCOPED_TRACE(route.name);
    EXPECT_EQ(json_text(send(body_with(*route.body, "nonsense", "1")).body, "field"), "nonsense");
    EXPECT_EQ(send("[]").status, 422);
    EXPECT_EQ(send("{").status, 422);
  }
}

TEST_F(AdminAccessTest, EveryParameterIsChecked) {
  const auto token = rig.token_line("operator");
  for (const auto& route : routes.all()) {
    for (const auto& parameter : route.parameters) {
      SCOPED_TRACE(fmt::format("{} {}", route.name, parameter.name));
      const bool is_free = parameter.schema.type == SchemaType::text && parameter.schema.format == nullptr &&
                           parameter.schema.choices.empty();
      if (is_free) continue;
      const bool in_path = parameter.in == api::In::path;
      const auto path = in_path ? path_of(route, parameter.name)
                                : fmt::format("{}?{}=%21%21", path_of(route), parameter.name);
      const auto answer = rig.ask(std::string(route.method), path, body_of(route), token);
      EXPECT_EQ(answer.status, 422) << answer.body;
      EXPECT_EQ(json_text(answer.body, "field"), parameter.name);
    }
  }
}

TEST_F(AdminAccessTest, ACursorThatNoListHasGivenIsNoFault) {
  for (const auto& route : routes.all()) {
    if (route.parameters.empty() || route.parameters.back().name != "cursor") continue;
    SCOPED_TRACE(route.name);
    // One part, two and three: texts where a list has times and numbers.
    for (const std::string cursor : {"bm9uc2Vuc2U", "YQpi", "YQpiCmM"}) {
      const auto answer = rig.get(path_of(route) + "?cursor=" + cursor);
      EXPECT_TRUE(answer.status == 200 || answer.status == 422) << answer.status << answer.body;
    }
  }
}

TEST_F(AdminAccessTest, TheDocumentAndTheRoutesNameEachOther) {
  const auto document = rig.ask("GET", "/openapi.json").body;
  std::size_t operations = 0;
  for (auto at = document.find("\"operationId\""); at != std::string::npos;
       at = document.find("\"operationId\"", at + 1)) {
    ++operations;
  }
  EXPECT_EQ(operations, routes.all().size());
  for (const auto& route : routes.all()) {
    EXPECT_THAT(document, testing::HasSubstr(fmt::format("\"operationId\":\"{}\"", route.name)));
    EXPECT_THAT(document, testing::HasSubstr(fmt::format("\"{}\":{{", route.path)));
    // Some other method: the path is there.
    EXPECT_EQ(rig.ask("PATCH", path_of(route)).status, 405) << route.name;
  }
}

}  // namespace
}  // namespace todoke::test

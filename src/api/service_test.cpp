// The way of a request through an API, without a socket: the router finds the route, the task runs on a loop
// of the test.
#include "api/service.hpp"

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "api/answers.hpp"
#include "pg/error.hpp"

namespace todoke::api {
namespace {

const Access kOpen{.schemes = {}, .failures = {{429, "RATE_LIMITED", "Too many."}}};
const Access kOnlyAlice{.schemes = {"bearer"}, .failures = {{401, "UNAUTHORIZED", "Nobody."}}};

class AliceDoor final : public Door {
 public:
  Task<tl::expected<Caller, net::Response>> admit(const net::Request& request, const Route& route) override {
    if (route.access == &kOnlyAlice && request.headers.get("Authorization") != "Bearer alice")
      co_return tl::unexpected(failure(401, "UNAUTHORIZED", "say who you are"));
    co_return Caller{.name = "alice", .network = {}};
  }
};

Task<net::Response> tell_item(const Call& call) {
  co_return answer(200, R"({"id":")" + call.text("item_id") + R"(","limit":)" +
                            std::to_string(call.integer_or("limit", 20)) + R"(,"who":")" + call.caller.name +
                            R"("})");
}

Task<net::Response> add_item(const Call& call) {
  co_return answer(201, R"({"name":")" + call.body_text("name").value_or("") + R"("})");
}

Task<net::Response> lose_database(const Call& /*call*/) {
  throw pg::ConnectionLost("the secret words of the database");
  co_return net::Response();
}

std::vector<Route> item_routes() {
  return {{.method = "GET",
           .path = "/items/{item_id}",
           .name = "getItem",
           .tag = "items",
           .meaning = "One item.",
           .access = &kOnlyAlice,
           .parameters = {in_path("item_id", formatted(kUuid, "Its id.")),
                          in_query("limit", integer_from(1, 100, "How many."))},
           .answers = {{.status = 200, .meaning = "The item.", .body = any_object("")}},
           .failures = {{404, "NOT_FOUND", "There is none."}},
           .handler = tell_item},
          {.method = "POST",
           .path = "/items",
           .name = "addItem",
           .tag = "items",
           .meaning = "Adds an item.",
           .access = &kOpen,
           .body = named("NewItem", object_of({{"name", text_up_to(9, "Its name.")}})),
           .answers = {{.status = 201, .meaning = "It is there.", .body = any_object("")}},
           .handler = add_item},
          {.method = "GET",
           .path = "/broken",
           .name = "getBroken",
           .tag = "items",
           .meaning = "Fails.",
           .access = &kOpen,
           .answers = {{.status = 200, .meaning = "Never."}},
           .handler = lose_database}};
}

std::shared_ptr<const Service> service_of(std::vector<Route> routes) {
  return std::make_shared<Service>(
      ServiceOptions{.title = "Items",
                     .version = "1",
                     .description = "Items.",
                     .bases = {"/api/v1", "/v1"},
                     .schemes = {{"bearer", R"({"type":"http","scheme":"bearer"})"}},
                     .cross_origin = true},
      std::move(routes), std::make_shared<AliceDoor>());
}

class ServiceTest : public testing::Test {
 protected:
  ServiceTest() { Service::add_to(router, service_of(item_routes())); }

  net::Response ask(const std::string& method, const std::string& target, const std::string& body = "",
                    const std::string& authorization = "Bearer alice") {
    net::Request request;
    request.method = method;
    request.target = target;
    request.body = body;
    request.headers.add("Authorization", authorization);
    const auto match = router.match(request);
    if (match.route == nullptr) return match.answer;
    net::Response response;
    asio::io_context io;
    const auto run = [&]() -> Task<void> { response = co_await match.route->handler(request); };
    spawn(io.get_executor(), run(), [](const std::exception_ptr& error) { EXPECT_FALSE(error); });
    io.run();
    return response;
  }
  std::string told(const std::string& method, const std::string& target, const std::string& body = "") {
    const auto response = ask(method, target, body);
    return std::to_string(response.status) + " " + response.body;
  }

  const std::string item = "/items/01234567-89ab-cdef-0123-456789abcdef";
  net::Router router;
};

TEST_F(ServiceTest, TheSameRoutesAreBelowEachBase) {
  const std::string told_of_item =
      R"(200 {"id":"01234567-89ab-cdef-0123-456789abcdef","limit":20,"who":"alice"})";
  EXPECT_EQ(told("GET", "/api/v1" + item), told_of_item);
  EXPECT_EQ(told("GET", "/v1" + item), told_of_item);
  EXPECT_EQ(ask("GET", "/v2" + item).status, 404);
}

TEST_F(ServiceTest, TheDoorIsAskedBeforeAnythingIsLookedAt) {
  EXPECT_EQ(ask("GET", "/v1/items/nonsense?x=1", "", "Bearer bob").status, 401);
  EXPECT_EQ(ask("GET", "/v1/items/nonsense?x=1").status, 422);
}

TEST_F(ServiceTest, ParametersAreWhatTheRouteSays) {
  EXPECT_NE(told("GET", "/v1" + item + "?limit=7").find(R"("limit":7)"), std::string::npos);
  EXPECT_EQ(told("GET", "/v1" + item + "?limit=0"),
            R"(422 {"code":"VALIDATION_ERROR","message":"limit must be a whole number from 1 to 100",)"
            R"("details":{"field":"limit"}})");
  EXPECT_NE(told("GET", "/v1" + item + "?limit=1&limit=2").find("limit is there twice"), std::string::npos);
  EXPECT_NE(told("GET", "/v1" + item + "?limti=1").find("limti is not known"), std::string::npos);
  EXPECT_NE(told("GET", "/v1/items/x").find("item_id must be a UUID"), std::string::npos);
}

TEST_F(ServiceTest, ABodyIsWhatTheRouteSays) {
  EXPECT_EQ(told("POST", "/v1/items", R"({"name":"a"})"), R"(201 {"name":"a"})");
  EXPECT_NE(told("POST", "/v1/items", "{}").find("name is required"), std::string::npos);
  EXPECT_NE(told("POST", "/v1/items", "nonsense").find(R"("field":"body")"), std::string::npos);
}

TEST_F(ServiceTest, TheWordsOfTheDatabaseStayHere) {
  const auto response = ask("GET", "/v1/broken");
  EXPECT_EQ(response.status, 503);
  EXPECT_TRUE(response.headers.has("Retry-After"));
  EXPECT_EQ(response.body.find("secret"), std::string::npos);
}

TEST_F(ServiceTest, PagesOfAnyOriginMayAsk) {
  EXPECT_EQ(ask("GET", "/v1" + item).headers.get("Access-Control-Allow-Origin"), "*");
  const auto preflight = ask("OPTIONS", "/v1" + item);
  EXPECT_EQ(preflight.status, 204);
  EXPECT_EQ(preflight.headers.get("Access-Control-Allow-Headers"), "*, Authorization");
  EXPECT_EQ(preflight.headers.get("Access-Control-Allow-Methods"), "OPTIONS, GET");
}

TEST_F(ServiceTest, TheDocumentNamesEveryRouteAndWhatItAnswers) {
  const auto response = ask("GET", "/api/v1/openapi.json");
  ASSERT_EQ(response.status, 200);
  const auto& text = response.body;
  for (const auto* part :
       {R"("openapi":"3.1.0")", R"("/items/{item_id}":{"get":{"operationId":"getItem")",
        R"("/items":{"post":{"operationId":"addItem")", R"("security":[{"bearer":[]}])", R"("security":[])",
        R"x("404":{"description":"`NOT_FOUND`: There is none.")x", R"("NewItem":{"type":"object")",
        R"("$ref":"#/components/schemas/NewItem")", R"("servers":[{"url":"/api/v1"},{"url":"/v1"}])"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST_F(ServiceTest, CachesAskWhetherTheDocumentHasChanged) {
  const auto tag = std::string(ask("GET", "/v1/openapi.json").headers.get("ETag"));
  net::Request request;
  request.headers.add("If-None-Match", "\"other\", " + tag);
  EXPECT_EQ(answer_to_caches(request, "{}", std::nullopt, std::chrono::seconds(1)).status, 200);
  request.headers.set(
      "If-None-Match",
      "W/" +
          std::string(answer_to_caches({}, "{}", std::nullopt, std::chrono::seconds(1)).headers.get("ETag")));
  EXPECT_EQ(answer_to_caches(request, "{}", std::nullopt, std::chrono::seconds(1)).status, 304);
  net::Request dated;
  const SystemTime then{std::chrono::seconds(1'700'000'000)};
  dated.headers.add("If-Modified-Since", "Tue, 14 Nov 2023 22:13:20 GMT");
  EXPECT_EQ(answer_to_caches(dated, "{}", then, std::chrono::seconds(1)).status, 304);
  EXPECT_EQ(answer_to_caches(dated, "{}", then + std::chrono::seconds(1), std::chrono::seconds(1)).status,
            200);
}

TEST(ServiceRoutesTest, ARouteThatContradictsItselfIsRefused) {
  auto undescribed = item_routes();
  undescribed.front().parameters.clear();
  EXPECT_THROW(service_of(undescribed), std::logic_error);
  auto twice = item_routes();
  twice.push_back(twice.front());
  EXPECT_THROW(service_of(twice), std::logic_error);
}

}  // namespace
}  // namespace todoke::api

#include "net/router.hpp"

#include <gtest/gtest.h>

namespace todoke::net {
namespace {

Task<Response> nothing(Request&) {
  co_return Response{};
}

struct RouterTest : testing::Test {
  Router router;
  Request request;

  RouterTest() {
    router.add("GET", "/", nothing);
    router.add("GET", "/do/{verb}", nothing);
    router.add("POST", "/do/{verb}", nothing);
    router.add("GET", "/do/order/{key}", nothing);
    router.add("GET", "/do/{other}/state", nothing);
    router.add("PUT", "/do/fixed", nothing);
    router.add("GET", "/live", nothing);
    router.add_websocket("/live", [](const Request&) { return nullptr; });
    router.add_websocket("/socket", [](const Request&) { return nullptr; });
  }

  RouteMatch match(std::string_view method, std::string_view target, bool upgrade = false) {
    request = Request{};
    request.method = method;
    request.target = target;
    if (upgrade) {
      request.headers.add("Connection", "Upgrade");
      request.headers.add("Upgrade", "websocket");
      request.headers.add("Sec-WebSocket-Version", "13");
      request.headers.add("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
    }
    return router.match(request);
  }
  std::string pattern(std::string_view method, std::string_view target) {
    const auto found = match(method, target);
    return found.route == nullptr ? "" : found.route->pattern;
  }
};

TEST_F(RouterTest, ParametersAreTakenFromTheirSegments) {
  EXPECT_EQ(pattern("GET", "/do/order/a-1?x=1&y=b+c"), "/do/order/{key}");
  EXPECT_EQ(request.parameters.at("key"), "a-1");
  EXPECT_EQ(request.query_value("y"), "b c");
  EXPECT_EQ(request.path, "/do/order/a-1");
  EXPECT_EQ(request.route, "/do/order/{key}");
}

TEST_F(RouterTest, LiteralIsStrongerThanParameterButDoesNotHideIt) {
  EXPECT_EQ(pattern("PUT", "/do/fixed"), "/do/fixed");
  EXPECT_EQ(pattern("GET", "/do/fixed"), "/do/{verb}");
  EXPECT_EQ(pattern("GET", "/do/order/state"), "/do/order/{key}");
  EXPECT_EQ(pattern("GET", "/do/fixed/state"), "/do/{other}/state");
  EXPECT_EQ(request.parameters.at("other"), "fixed");
}

TEST_F(RouterTest, EscapedSlashStaysInsideItsParameter) {
  EXPECT_EQ(pattern("GET", "/do/order/a%2Fb%20c"), "/do/order/{key}");
  EXPECT_EQ(request.parameters.at("key"), "a/b c");
}

TEST_F(RouterTest, TrailingSlashAndEmptySegmentsAreOtherPaths) {
  EXPECT_EQ(match("GET", "/live/").answer.status, 404);
  EXPECT_EQ(match("GET", "/do/").answer.status, 404) << "a parameter is never empty";
  EXPECT_EQ(match("GET", "//").answer.status, 404);
  EXPECT_EQ(pattern("GET", "/"), "/");
}

TEST_F(RouterTest, WrongEscapesAndTargetsAreMalformed) {
  for (const auto* bad : {"/do/%", "/do/%zz", "/do/%00", "/?a=%1", "do", "*", "host:80", ""}) {
    EXPECT_EQ(match("GET", bad).answer.status, 400) << bad;
  }
}

TEST_F(RouterTest, AbsoluteFormIsTakenByItsPath) {
  EXPECT_EQ(pattern("GET", "http://any.host:80/live?x=1"), "/live");
  EXPECT_EQ(pattern("GET", "http://any.host"), "/");
}

TEST_F(RouterTest, OtherMethodIsRefusedWithWhatIsAllowed) {
  const auto found = match("DELETE", "/do/fixed");
  EXPECT_EQ(found.route, nullptr);
  EXPECT_EQ(found.answer.status, 405);
  EXPECT_EQ(found.answer.headers.get("Allow"), "GET, HEAD, OPTIONS, POST, PUT");
  EXPECT_EQ(found.answer.body,
            "{\"code\":\"METHOD_NOT_ALLOWED\",\"message\":\"this path does not take this method\","
            "\"details\":{\"allowed\":[\"GET\",\"HEAD\",\"OPTIONS\",\"POST\",\"PUT\"]}}");
  EXPECT_EQ(match("get", "/live").answer.status, 405) << "methods are case-sensitive";
}

TEST_F(RouterTest, OptionsTellWhatIsAllowed) {
  const auto found = match("OPTIONS", "/live");
  EXPECT_EQ(found.answer.status, 204);
  EXPECT_EQ(found.answer.headers.get("Allow"), "GET, HEAD, OPTIONS");
  EXPECT_EQ(match("OPTIONS", "*").answer.status, 204);
  EXPECT_EQ(match("OPTIONS", "/nowhere").answer.status, 404);
}

TEST_F(RouterTest, HeadIsAnsweredByGet) {
  EXPECT_EQ(match("HEAD", "/live").route->method, "GET");
}

TEST_F(RouterTest, UpgradeGoesToTheWebsocketRouteOfTheSamePath) {
  EXPECT_TRUE(match("GET", "/live", true).route->is_websocket());
  EXPECT_FALSE(match("GET", "/live", false).route->is_websocket());
  EXPECT_FALSE(match("GET", "/", true).route->is_websocket()) << "no websocket here: an ordinary request";
}

TEST_F(RouterTest, PlainRequestToAWebsocketPathIsToldToUpgrade) {
  const auto found = match("GET", "/socket");
  EXPECT_EQ(found.answer.status, 426);
  EXPECT_EQ(found.answer.headers.get("Upgrade"), "websocket");
}

TEST_F(RouterTest, UnknownPathIsNotFoundAndNamesNoRoute) {
  const auto found = match("GET", "/nowhere");
  EXPECT_EQ(found.answer.status, 404);
  EXPECT_EQ(request.route, "");
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "/a";
  EXPECT_EQ(match("GET", deep).answer.status, 404);
}

TEST_F(RouterTest, RouteThatIsThereAlreadyIsAProgrammingError) {
  EXPECT_THROW(router.add("GET", "/do/{again}", nothing), std::logic_error);
  EXPECT_THROW(router.add("GET", "no-slash", nothing), std::logic_error);
  EXPECT_THROW(router.add("GET", "/a{b}", nothing), std::logic_error);
  EXPECT_THROW(router.add_websocket("/live", [](const Request&) { return nullptr; }), std::logic_error);
}

}  // namespace
}  // namespace todoke::net

#include "app/routes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/run_task.hpp"

namespace todoke::app {
namespace {

using test::run_task;
using testing::HasSubstr;
using testing::Not;

class RoutesTest : public testing::Test {
 protected:
  RoutesTest() {
    add_public_routes(public_, board_, true);
    add_internal_routes(internal_, board_, registry_);
  }

  static net::Response get(const net::Router& router, const std::string& path) {
    net::Request request;
    request.method = "GET";
    request.target = path;
    request.path = path;
    const auto match = router.match(request);
    if (match.route == nullptr) return match.answer;
    return run_task([&]() -> Task<net::Response> { co_return co_await match.route->handler(request); });
  }

  HealthBoard board_;
  metrics::Registry registry_;
  net::Router public_;
  net::Router internal_;
};

TEST_F(RoutesTest, ThePublicSeesTheStateAndNoDetail) {
  board_.report("database", true, {HealthState::down, "password authentication failed"});
  const auto answer = get(public_, "/healthz");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.body, "{\"status\":\"down\"}\n");
}

TEST_F(RoutesTest, TheInternalListenerNamesEveryCheck) {
  board_.report("database", true, {HealthState::up, ""});
  board_.report("order sending", false, {HealthState::degraded, "no worker runs"});
  const auto answer = get(internal_, "/healthz");
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.body, HasSubstr(R"("name":"database","state":"up","essential":true)"));
  EXPECT_EQ(health_summary(answer.body), "degraded: order sending degraded (no worker runs)");
}

TEST_F(RoutesTest, ASummaryOfANodeThatIsWellIsOneWord) {
  board_.report("database", true, {HealthState::up, ""});
  EXPECT_EQ(health_summary(get(internal_, "/healthz").body), "up");
  EXPECT_EQ(health_summary("<html>"), "an answer that can't be read");
  EXPECT_EQ(health_summary("{}"), "an answer that can't be read");
}

TEST_F(RoutesTest, MetricsAreForTheInternalListenerOnly) {
  registry_.counter("sample_total", "A sample.").add();
  EXPECT_THAT(get(internal_, "/metrics").body, HasSubstr("sample_total 1"));
  EXPECT_EQ(get(public_, "/metrics").status, 404);
}

TEST_F(RoutesTest, APageOfARoleStandsInPlaceOfTheGreeting) {
  EXPECT_EQ(get(public_, "/").status, 200);
  net::Router quiet;
  add_public_routes(quiet, board_, false);
  EXPECT_EQ(get(quiet, "/").status, 404);
}

}  // namespace
}  // namespace todoke::app

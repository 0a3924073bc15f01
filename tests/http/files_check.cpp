// The server without a file descriptor left. On its own, because the sanitizers need descriptors for their
// checks.
#include <sys/resource.h>

#include <gtest/gtest.h>

#include "handlers.hpp"
#include "harness/http_rig.hpp"

namespace todoke::net::test {
namespace {

struct HttpFiles : testing::Test {
  Rig rig;
  HttpFiles() { rig.router->add("GET", "/hello", echo); }
};

TEST_F(HttpFiles, ServerOutOfFileDescriptorsWaitsAndGoesOn) {
  rig.start();
  RawClient client;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  client.connect(rig.port());
  client.send(get("/hello"));
  const bool refused = rig.await_metric_above(
      "todoke_http_connections_refused_total{listener=\"public\",reason=\"files\"}", 0);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(refused);
  EXPECT_EQ(client.read_response().status, 200);
}

}  // namespace
}  // namespace todoke::net::test

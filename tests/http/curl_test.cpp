// A client that others wrote.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "handlers.hpp"
#include "harness/certificate.hpp"
#include "harness/http_rig.hpp"

namespace todoke::net::test {
namespace {

struct Curl : testing::Test {
  Rig rig;
  Curl() {
    rig.router->add("GET", "/hello", echo);
    rig.router->add("POST", "/echo", echo);
    rig.config.limits.body_bytes_max = 100'000;
  }
  static std::string curl(const std::string& arguments) {
    return run_command(
        fmt::format("curl --silent --show-error --noproxy '*' --max-time 30 {} 2>&1", arguments));
  }
};

TEST_F(Curl, GetsAndReusesTheConnection) {
  rig.start();
  const auto url = rig.url("/hello");
  EXPECT_EQ(curl(fmt::format("-w '%{{num_connects}}' {} {}", url, url)), "/hello1/hello0");
}

TEST_F(Curl, PostsLargeBodiesWithExpectAndChunks) {
  rig.start();
  const auto large = fmt::format(
      "head -c 90000 /dev/zero | tr '\\0' x | curl --silent --noproxy '*' --max-time 30 {} "
      "--data-binary @- {} | wc -c",
      "-H 'Expect: 100-continue'", rig.url("/echo"));
  EXPECT_EQ(std::stoi(run_command(large)), 90'000);
  const auto chunked = fmt::format(
      "head -c 90000 /dev/zero | tr '\\0' x | curl --silent --noproxy '*' --max-time 30 {} "
      "-T - -X POST {} | wc -c",
      "-H 'Transfer-Encoding: chunked'", rig.url("/echo"));
  EXPECT_EQ(std::stoi(run_command(chunked)), 90'000);
}

TEST_F(Curl, SeesTheRefusalOfABodyThatIsTooLarge) {
  rig.start();
  const auto status = run_command(fmt::format(
      "head -c 3000000 /dev/zero | curl --silent --noproxy '*' --max-time 30 -H 'Expect:' -o /dev/null "
      "-w '%{{http_code}}' --data-binary @- {}",
      rig.url("/echo")));
  EXPECT_EQ(status, "413");
}

TEST_F(Curl, SpeaksHttp10AndHead) {
  rig.start();
  EXPECT_EQ(curl("--http1.0 " + rig.url("/hello")), "/hello");
  EXPECT_NE(curl("--head " + rig.url("/hello")).find("Content-Length: 6"), std::string::npos);
}

TEST_F(Curl, SpeaksTls) {
  TestCertificate certificate;
  rig.config.tls_cert = certificate.cert();
  rig.config.tls_key = certificate.key();
  rig.start();
  EXPECT_EQ(curl(fmt::format("--cacert {} {}", certificate.cert(), rig.url("/hello", true))), "/hello");
}

}  // namespace
}  // namespace todoke::net::test

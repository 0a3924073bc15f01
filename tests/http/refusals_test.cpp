// What is malformed or ambiguous: refused with 400 and the end of the connection, so that nothing behind it
// is taken for a request.
#include <gtest/gtest.h>

#include "handlers.hpp"
#include "harness/http_rig.hpp"

namespace todoke::net::test {
namespace {

using namespace std::string_literals;

struct Malformed {
  const char* name;
  std::string bytes;
  int status = 400;
};

class HttpRefusals : public testing::TestWithParam<Malformed> {};

TEST_P(HttpRefusals, EndsTheConnectionAndHidesNoSecondRequest) {
  Rig rig;
  rig.router->add("GET", "/a", echo);
  rig.router->add("POST", "/a", echo);
  rig.router->add("GET", "/smuggled", echo);
  rig.start();
  RawClient client(rig.port());
  client.send(GetParam().bytes);
  const auto response = client.read_response();
  EXPECT_EQ(response.status, GetParam().status);
  EXPECT_EQ(response.header("Connection"), "close");
  EXPECT_NE(response.body.find("\"code\":"), std::string::npos);
  client.finish_sending();
  EXPECT_TRUE(client.ended());
  EXPECT_EQ(rig.metric("todoke_http_requests_total{listener=\"public\",route=\"/"
                       "smuggled\",method=\"GET\",status=\"2xx\"}"),
            0);
}

const std::string kSmuggled = "GET /smuggled HTTP/1.1\r\nHost: t\r\n\r\n";

INSTANTIATE_TEST_SUITE_P(
    Cases, HttpRefusals,
    testing::Values(
        Malformed{"LengthThenChunked",
                  "POST /a HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\nTransfer-Encoding: "
                  "chunked\r\n\r\n0\r\n\r\n" +
                      kSmuggled},
        Malformed{"ChunkedThenLength",
                  "POST /a HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\nContent-Length: "
                  "4\r\n\r\n0\r\n\r\n" +
                      kSmuggled},
        Malformed{
            "TwoLengths",
            "POST /a HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n" + kSmuggled},
        Malformed{"LengthWithSign", "POST /a HTTP/1.1\r\nHost: t\r\nContent-Length: +5\r\n\r\n" + kSmuggled},
        Malformed{"LengthNegative", "POST /a HTTP/1.1\r\nHost: t\r\nContent-Length: -1\r\n\r\n" + kSmuggled},
        Malformed{
            "LengthOverflows",
            "POST /a HTTP/1.1\r\nHost: t\r\nContent-Length: 99999999999999999999999\r\n\r\n" + kSmuggled},
        Malformed{"UnknownEncoding",
                  "POST /a HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: gzip\r\n\r\n" + kSmuggled},
        Malformed{"NotQuiteChunked",
                  "POST /a HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: xchunked\r\n\r\n" + kSmuggled},
        Malformed{
            "EncodingChain",
            "POST /a HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + kSmuggled},
        Malformed{"TwoEncodings",
                  "POST /a HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: identity\r\n"
                  "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" +
                      kSmuggled},
        Malformed{"ChunkedInHttp10",
                  "POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + kSmuggled},
        Malformed{"ChunkSizeNoHex",
                  "POST /a HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n\r\n" + kSmuggled},
        Malformed{"ChunkSizeOverflows",
                  "POST /a HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "fffffffffffffffff\r\n\r\n" +
                      kSmuggled},
        Malformed{"ChunkLongerThanItsSize",
                  "POST /a HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabcd\r\n0\r\n\r\n" +
                      kSmuggled},
        Malformed{
            "EndlessChunkExtension",
            "POST /a HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n1;" + std::string(20'000, 'x')},
        Malformed{"EndlessTrailer",
                  "POST /a HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: " +
                      std::string(20'000, 'x')},
        Malformed{"SpaceBeforeColon",
                  "POST /a HTTP/1.1\r\nHost: t\r\nContent-Length : 5\r\n\r\n" + kSmuggled},
        Malformed{"FieldWithoutColon", "GET /a HTTP/1.1\r\nHost: t\r\nNonsense\r\n\r\n" + kSmuggled},
        Malformed{"NulInField", "GET /a HTTP/1.1\r\nHost: t\r\nX: a\0b\r\n\r\n"s + kSmuggled},
        Malformed{"NoHost", "GET /a HTTP/1.1\r\n\r\n" + kSmuggled},
        Malformed{"TwoHosts", "GET /a HTTP/1.1\r\nHost: t\r\nHost: u\r\n\r\n" + kSmuggled},
        Malformed{"NoHttp", "\x16\x03\x01 this is not HTTP\r\n\r\n"},
        Malformed{"SpaceInTarget", "GET /a b HTTP/1.1\r\nHost: t\r\n\r\n"},
        Malformed{"OtherVersion", "GET /a HTTP/2.0\r\nHost: t\r\n\r\n" + kSmuggled},
        Malformed{"HeaderTooLarge",
                  "GET /a HTTP/1.1\r\nHost: t\r\nX: " + std::string(17'000, 'x') + "\r\n\r\n", 431},
        Malformed{"TargetTooLarge", "GET /" + std::string(17'000, 'x'), 431}),
    [](const auto& parameter) { return parameter.param.name; });

TEST(HttpHeaders, HeaderJustBelowTheLimitIsTaken) {
  Rig rig;
  rig.router->add("GET", "/a", echo);
  rig.start();
  RawClient client(rig.port());
  EXPECT_EQ(client.ask(get("/a", "X: " + std::string(16'000, 'x') + "\r\n")).status, 200);
}

}  // namespace
}  // namespace todoke::net::test

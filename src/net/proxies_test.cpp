#include "net/proxies.hpp"

#include <gtest/gtest.h>

namespace todoke::net {
namespace {

TrustedProxies proxies(std::vector<std::string> blocks) {
  return TrustedProxies::parse(blocks).value();
}

Headers with(std::string_view name, std::string_view value) {
  Headers headers;
  headers.add(name, value);
  return headers;
}

TEST(Proxies, BlocksContainTheirAddressesOnly) {
  const auto p = proxies({"10.0.0.0/8", "192.168.4.0/23", "2001:db8::/33", "127.0.0.1", "::1"});
  for (const auto* in :
       {"10.255.0.1", "192.168.5.255", "2001:db8:7fff::1", "127.0.0.1", "::1", "::ffff:10.1.2.3"}) {
    EXPECT_TRUE(p.contains(in)) << in;
  }
  for (const auto* out :
       {"11.0.0.0", "192.168.6.0", "192.168.3.255", "2001:db8:8000::1", "127.0.0.2", "::2", "x"}) {
    EXPECT_FALSE(p.contains(out)) << out;
  }
  EXPECT_TRUE(proxies({"0.0.0.0/0"}).contains("8.8.8.8"));
  EXPECT_FALSE(proxies({"0.0.0.0/0"}).contains("2001:db8::1")) << "every IPv4 address, no IPv6 address";
}

TEST(Proxies, WrongBlocksAreRefused) {
  for (const std::string bad :
       {"", "10.0.0", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/x", "10.0.0.0/-1", "host"}) {
    EXPECT_FALSE(TrustedProxies::parse(std::vector{bad})) << bad;
  }
}

TEST(Proxies, ForwardingHeadersFromOthersAreIgnored) {
  auto headers = with("X-Forwarded-For", "1.2.3.4");
  headers.add("X-Forwarded-Proto", "https");
  const auto view = client_view("9.9.9.9", false, headers, proxies({"10.0.0.0/8"}));
  EXPECT_EQ(view.ip, "9.9.9.9");
  EXPECT_FALSE(view.secure);
}

TEST(Proxies, ClientIsTheRightmostAddressThatIsNoProxy) {
  const auto p = proxies({"10.0.0.0/8"});
  const auto ip = [&](std::string_view list) {
    return client_view("10.0.0.1", false, with("X-Forwarded-For", list), p).ip;
  };
  EXPECT_EQ(ip("1.2.3.4"), "1.2.3.4");
  EXPECT_EQ(ip("6.6.6.6, 1.2.3.4, 10.0.0.2"), "1.2.3.4") << "what the client wrote itself is not believed";
  EXPECT_EQ(ip("10.0.0.3, 10.0.0.2"), "10.0.0.3") << "all are proxies: the farthest";
  EXPECT_EQ(ip("1.2.3.4:5678"), "1.2.3.4");
  EXPECT_EQ(ip("[2001:db8::1]:5678"), "2001:db8::1");
  EXPECT_EQ(ip("2001:db8::1"), "2001:db8::1");
  EXPECT_EQ(ip("1.2.3.4, unknown, 10.0.0.2"), "10.0.0.2") << "nothing left of a bad entry is believed";
  EXPECT_EQ(ip("garbage"), "10.0.0.1");
}

TEST(Proxies, SeveralHeadersCountAsOneList) {
  auto headers = with("X-Forwarded-For", "6.6.6.6");
  headers.add("x-forwarded-for", "1.2.3.4");
  EXPECT_EQ(client_view("10.0.0.1", false, headers, proxies({"10.0.0.0/8"})).ip, "1.2.3.4");
}

TEST(Proxies, ForwardedHeaderIsUnderstood) {
  const auto p = proxies({"10.0.0.0/8"});
  const auto view =
      client_view("10.0.0.1", false,
                  with("Forwarded", "for=6.6.6.6, for=\"[2001:db8::1]:4711\";proto=https;by=10.0.0.1"), p);
  EXPECT_EQ(view.ip, "2001:db8::1");
  EXPECT_TRUE(view.secure);
}

TEST(Proxies, ProtocolIsWhatTheNearestProxySays) {
  const auto p = proxies({"10.0.0.0/8"});
  EXPECT_TRUE(client_view("10.0.0.1", false, with("X-Forwarded-Proto", "https"), p).secure);
  EXPECT_FALSE(client_view("10.0.0.1", true, with("X-Forwarded-Proto", "https, http"), p).secure);
  EXPECT_TRUE(client_view("10.0.0.1", true, Headers{}, p).secure);
}

}  // namespace
}  // namespace todoke::net

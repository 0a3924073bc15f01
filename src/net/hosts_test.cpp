#include "net/hosts.hpp"

#include <gtest/gtest.h>

namespace todoke::net {
namespace {

TEST(Hosts, AreFoundInAuthoritiesAndUrls) {
  EXPECT_EQ(host_of("Relay.Example.org:443"), "relay.example.org");
  EXPECT_EQ(host_of("relay.example.org."), "relay.example.org");
  EXPECT_EQ(host_of("[::1]:7447"), "::1");
  EXPECT_EQ(host_of("::1"), "::1");
  EXPECT_EQ(host_of("wss://relay.example.org/path?q"), "relay.example.org");
  EXPECT_EQ(host_of("[::1]evil.example"), "");
  EXPECT_EQ(host_of(""), "");
}

TEST(Hosts, LoopbackIsWhatOnlyThisMachineReaches) {
  for (const auto* listen : {"localhost:1", "127.0.0.1:0", "127.8.9.10:1", "[::1]:7447"})
    EXPECT_TRUE(is_loopback(listen)) << listen;
  for (const auto* listen :
       {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "relay.example:1", "localhost.evil.example:1", "128.0.0.1:1"})
    EXPECT_FALSE(is_loopback(listen)) << listen;
}

TEST(Hosts, OnALoopbackAddressOnlyItsOwnNamesAndTheConfiguredOnesPass) {
  const HostRule rule("127.0.0.1:7447", std::vector<std::string>{"relay.example.org"});
  for (const auto* host : {"localhost", "LOCALHOST:7447", "127.0.0.1:7447", "127.1.2.3", "[::1]:7447", "::1",
                           "relay.example.org", "Relay.Example.Org:443", "localhost."})
    EXPECT_TRUE(rule.allows(host)) << host;
  for (const auto* host : {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "",
                           "127.0.0.1, evil.example", "[::1]evil.example", "org", "x.relay.example.org"})
    EXPECT_FALSE(rule.allows(host)) << host;
}

TEST(Hosts, OnAnotherAddressNothingIsCheckedUntilNamesAreConfigured) {
  EXPECT_FALSE(HostRule("0.0.0.0:7447", {}).checks());
  const HostRule rule("0.0.0.0:7447", std::vector<std::string>{"relay.example.org"});
  EXPECT_TRUE(rule.allows("relay.example.org"));
  EXPECT_TRUE(rule.allows("10.1.2.3:7447")) << "the probe of a load balancer";
  EXPECT_TRUE(rule.allows("[2001:db8::1]:7447"));
  EXPECT_FALSE(rule.allows("evil.example"));
  EXPECT_FALSE(rule.allows("localhost"));
}

TEST(Hosts, AStarLetsEveryNamePass) {
  EXPECT_TRUE(HostRule("127.0.0.1:1", std::vector<std::string>{"*"}).allows("evil.example"));
  EXPECT_TRUE(HostRule().allows("evil.example"));
}

}  // namespace
}  // namespace todoke::net

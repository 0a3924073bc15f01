#include "net/client_network.hpp"

#include <gtest/gtest.h>

namespace todoke::net {
namespace {

TEST(ClientNetwork, Ipv4AddressIsOneClientAndIpv6IsItsNetwork) {
  EXPECT_EQ(network_of("192.0.2.7", {}), "192.0.2.7");
  EXPECT_EQ(network_of("::ffff:192.0.2.7", {}), "192.0.2.7");
  EXPECT_EQ(network_of("2001:db8:1:2:3:4:5:6", {}), "2001:db8:1:2::/64");
  EXPECT_EQ(network_of("2001:db8:1:2:ffff::1", {}), network_of("2001:DB8:1:2::", {}));
}

TEST(ClientNetwork, PrefixesAreCutToTheBit) {
  EXPECT_EQ(network_of("192.0.2.255", {27, 64}), "192.0.2.224/27");
  EXPECT_EQ(network_of("192.0.2.255", {0, 64}), "0.0.0.0/0");
  EXPECT_EQ(network_of("2001:db8:ffff::1", {32, 33}), "2001:db8:8000::/33");
  EXPECT_EQ(network_of("2001:db8::1", {32, 128}), "2001:db8::1");
}

TEST(ClientNetwork, LogsNameNoCustomer) {
  EXPECT_EQ(shown_network("192.0.2.7"), "192.0.2.0/24");
  EXPECT_EQ(shown_network("2001:db8:1:2::1"), "2001:db8:1::/48");
  EXPECT_EQ(neighbourhood_of("192.0.2.7"), "192.0.0.0/16");
  EXPECT_EQ(neighbourhood_of("2001:db8:1:2::1"), "2001:db8::/32");
}

TEST(ClientNetwork, WhatIsNoAddressIsItsOwnNetwork) {
  EXPECT_EQ(network_of("fe80::1%eth0", {}), "fe80::1%eth0");
  EXPECT_EQ(network_of("", {}), "");
}

}  // namespace
}  // namespace todoke::net

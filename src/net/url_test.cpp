#include "net/url.hpp"

#include <gtest/gtest.h>

namespace todoke::net {
namespace {

TEST(Url, PartsAreTakenApart) {
  const auto url = parse_url("https://Example.COM:8443/a/b?c=d#e").value();
  EXPECT_TRUE(url.secure);
  EXPECT_EQ(url.host, "example.com");
  EXPECT_EQ(url.port, 8443);
  EXPECT_EQ(url.target, "/a/b?c=d");
  EXPECT_EQ(url.authority(), "example.com:8443");
  EXPECT_EQ(url.text(), "https://example.com:8443/a/b?c=d");
}

TEST(Url, PortAndPathHaveDefaults) {
  EXPECT_EQ(parse_url("http://host").value().port, 80);
  EXPECT_EQ(parse_url("HTTPS://host").value().port, 443);
  EXPECT_EQ(parse_url("http://host?q").value().target, "/?q");
  EXPECT_EQ(parse_url("http://host:80/").value().authority(), "host");
}

TEST(Url, Ipv6AddressesComeInBrackets) {
  const auto url = parse_url("http://[::1]:7447/x").value();
  EXPECT_EQ(url.host, "::1");
  EXPECT_EQ(url.authority(), "[::1]:7447");
  EXPECT_EQ(parse_url("http://[::1]/").value().port, 80);
  EXPECT_EQ(parse_url("http://[::1]/").value().authority(), "[::1]");
}

TEST(Url, WhatIsNoHttpUrlIsRefused) {
  for (const auto* bad : {"", "ftp://host/", "host/path", "http://", "http:///x", "http://user:pw@host/",
                          "http://host:0/", "http://host:99999/", "http://host:x/", "http://ho st/",
                          "http://host/a\r\nX: y", "http://[::1/", "http://::1/", "http://[nonsense]/",
                          "http://h%0d%0aX/", "http://host:/", "http://host/%zz", "http://host/\xff"}) {
    EXPECT_FALSE(parse_url(bad)) << bad;
  }
}

}  // namespace
}  // namespace todoke::net

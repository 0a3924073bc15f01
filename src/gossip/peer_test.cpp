#include "gossip/peer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace todoke::gossip {
namespace {

const std::string kId(64, 'a');

TEST(GossipPeer, IsReadAsItIsWritten) {
  for (const std::string address :
       {"127.0.0.1:7449", "relay.example.org:1", "[::1]:65535", "https://relay.example.org",
        "127.0.0.1:7449+https://relay.example.org/"}) {
    const auto peer = parse_peer(kId + "@" + address);
    ASSERT_TRUE(peer) << address;
    EXPECT_EQ(peer->id.hex(), kId);
    EXPECT_EQ(peer->address, address);
    EXPECT_EQ(peer->text(), kId + "@" + address);
  }
}

TEST(GossipPeer, RefusesWhatCantBeDialled) {
  for (const std::string& text :
       {std::string(), kId, kId + "@", kId + "@host", kId + "@:7449", kId + "@host:0", kId + "@host:65536",
        kId + "@host:x", kId + "@::1:7449", kId + "@a b:7449", kId.substr(1) + "@host:7449",
        kId + "@ftp://host", kId + "@host+https://relay", kId + "@host:1+", kId + "@host:1+relay",
        kId + "@https://a+https://b", std::string(64, 'A') + "@host:7449"}) {
    EXPECT_FALSE(parse_peer(text)) << text;
  }
}

}  // namespace
}  // namespace todoke::gossip

#include "gossip/node_key.hpp"

#include <fstream>
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace todoke::gossip {
namespace {

class GossipNodeKey : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/todoke_gossip_key_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

TEST_F(GossipNodeKey, StaysTheSameAndIsPrivate) {
  const auto first = take_node_key(folder_).key;
  EXPECT_EQ(take_node_key(folder_).key, first);
  struct stat info{};
  ASSERT_EQ(stat((folder_ / "gossip.key").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST_F(GossipNodeKey, IsOfOneProcessAtATime) {
  const auto first = take_node_key(folder_);
  const auto second = take_node_key(folder_);
  EXPECT_NE(first.key, second.key);
}

TEST_F(GossipNodeKey, IsRefusedWhenOthersCanReadIt) {
  take_node_key(folder_);
  ASSERT_EQ(chmod((folder_ / "gossip.key").c_str(), 0644), 0);
  EXPECT_THROW(take_node_key(folder_), UserError);
}

TEST_F(GossipNodeKey, IsRefusedWhenItIsNone) {
  take_node_key(folder_);
  std::ofstream(folder_ / "gossip.key") << "something else\n";
  EXPECT_THROW(take_node_key(folder_), UserError);
}

}  // namespace
}  // namespace todoke::gossip

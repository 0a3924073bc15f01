// What the node says of itself, over HTTP.
#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.hpp"
#include "users/rig.hpp"

namespace todoke::test {
namespace {

class UserBootstrapTest : public testing::Test {
 protected:
  std::string await_nodes() {
    std::string told;
    EXPECT_TRUE(await([&] {
      told = rig.get("/bootstrap/nodes").body;
      return member(told, "items.0.kind") == "39000";
    })) << told;
    return told;
  }

  UsersRig rig{{{"bootstrap.enabled", "on"},
                {"bootstrap.key_file", (std::filesystem::temp_directory_path() / random_hex(8)).string()}},
               {"relay", "index", "users"}};
};

TEST_F(UserBootstrapTest, TheDescriptorIsThereForCachesToo) {
  const auto told = await_nodes();
  EXPECT_EQ(
      member(told, "items.0.pubkey"),
      rig.value("SELECT pubkey FROM cn_bootstrap.keys WHERE algorithm = 'node' AND withdrawn_at IS NULL"));
  const auto response = rig.get("/bootstrap/nodes");
  EXPECT_EQ(response.header("Cache-Control"), "public, max-age=300");
  EXPECT_NE(response.header("Last-Modified"), "");
  const auto known = fmt::format("If-None-Match: {}\r\n", response.header("ETag"));
  EXPECT_EQ(rig.get("/bootstrap/nodes", known).status, 304);
}

TEST_F(UserBootstrapTest, HintsGoOnWhereTheLastAnswerEnded) {
  await_nodes();
  // Each is told a moment after its event is in effect.
  std::string last = "0";
  EXPECT_TRUE(await([&] {
    const auto next = rig.get("/bootstrap/hints/latest?since=" + last);
    if (next.status == 200) last = member(next.body, "last");
    return next.status == 204 && last != "0";
  }));
}

TEST_F(UserBootstrapTest, TheServicesOfATopicAreItsOwn) {
  await_nodes();
  EXPECT_EQ(rig.get(fmt::format("/bootstrap/topics/{}/services", kTopicA)).body, R"({"items":[]})");
  EXPECT_EQ(code(rig.get("/bootstrap/topics/none/services")), "422 VALIDATION_ERROR");
}

}  // namespace
}  // namespace todoke::test

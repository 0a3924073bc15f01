// Clients that others wrote, unmodified, against a running node. Each prints a line for every check it makes.
#include <filesystem>

#include <gtest/gtest.h>

#include "harness/todoke_process.hpp"

namespace todoke::test {
namespace {

using Command = std::vector<std::string>;

const Command kNostrTools = {"node", TODOKE_CLIENTS "/nostr_tools.mjs"};
const Command kNostrSdk = {TODOKE_NOSTR_SDK_CLIENT};
const std::string kSoftware = "--relay.software=https://example.org/todoke";

void expect_works(Command client, const std::string& path, const std::string& policy,
                  const std::vector<std::string>& node_arguments) {
  ASSERT_TRUE(std::filesystem::exists(client.back())) << "scripts/clients gets the clients";
  const TempFolder folder;
  TodokeUp node(folder.path(), node_arguments);
  node.wait_ready();
  client.insert(client.end(), {"ws://" + node.public_address() + path, policy, "kukuri:global"});
  const auto exit = run_command(client);
  EXPECT_EQ(exit.code, 0) << exit.out << exit.err;
}

void expect_works_in_open(const Command& client) {
  expect_works(client, "/", "open", {"--relay.topic_policy", "open", kSoftware});
}

void expect_works_with_topics(const Command& client) {
  expect_works(client, "/relay", "topics", {kSoftware});
}

TEST(NostrTools, WorksWithAnOpenRelay) {
  expect_works_in_open(kNostrTools);
}

TEST(NostrTools, WorksWithTopics) {
  expect_works_with_topics(kNostrTools);
}

TEST(NostrSdk, WorksWithAnOpenRelay) {
  expect_works_in_open(kNostrSdk);
}

TEST(NostrSdk, WorksWithTopics) {
  expect_works_with_topics(kNostrSdk);
}

}  // namespace
}  // namespace todoke::test

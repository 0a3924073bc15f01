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

// Requests that are made up from the document of an API: no answer is one that the document does not name,
// and none is a 500. A 503 is named.
TEST(Schemathesis, FindsNoUndocumentedAnswerOfTheUserApi) {
  ASSERT_TRUE(std::filesystem::exists(TODOKE_SCHEMATHESIS)) << "scripts/clients gets the clients";
  const TempFolder folder;
  TodokeUp node(folder.path(), {"--limits.rates=off"});
  node.wait_ready();
  const auto url = "http://" + node.public_address();
  auto token = run_command({"node", TODOKE_CLIENTS "/user_token.mjs", url}).out;
  ASSERT_FALSE(token.empty());
  token.pop_back();
  const auto exit = run_command(
      {TODOKE_SCHEMATHESIS, "run", url + "/api/v1/openapi.json", "--url", url + "/api/v1", "--header",
       "Authorization: Bearer " + token, "--checks",
       "status_code_conformance,content_type_conformance,response_schema_conformance", "--max-examples", "30",
       "--phases", "examples,coverage,fuzzing", "--seed", "1", "--no-color"});
  EXPECT_EQ(exit.code, 0) << exit.out << exit.err;
}

// From a person's request to a topic that is searched, and its end.
TEST(NostrTools, GoesTheWayOfATopicThroughTheUserApi) {
  ASSERT_TRUE(std::filesystem::exists(TODOKE_CLIENTS "/node_modules")) << "scripts/clients gets the clients";
  const TempFolder folder;
  TodokeUp node(folder.path(), {"--limits.rates=off"});
  node.wait_ready();
  const auto exit = run_command({"node", TODOKE_CLIENTS "/user_api.mjs", "http://" + node.public_address(),
                                 todoke_binary(), node.data_dir().string()});
  EXPECT_EQ(exit.code, 0) << exit.out << exit.err;
}

}  // namespace
}  // namespace todoke::test

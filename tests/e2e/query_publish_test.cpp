// `todoke query` and `todoke publish` beside a running node.
#include <algorithm>
#include <fstream>
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/nostr_client.hpp"
#include "harness/todoke_process.hpp"

namespace todoke::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr auto* kGlobalFilter = R"({"#t":["kukuri:global"]})";

class QueryPublish : public testing::Test {
 protected:
  std::vector<std::string> command(std::string name, std::vector<std::string> words) const {
    std::vector<std::string> command{todoke_binary(), std::move(name)};
    command.insert(command.end(), words.begin(), words.end());
    command.insert(command.end(), {"--data_dir", folder.path().string()});
    return command;
  }
  Exit query(std::vector<std::string> words) const { return run_command(command("query", std::move(words))); }
  Exit publish(std::vector<std::string> words) const {
    return run_command(command("publish", std::move(words)));
  }

  [[nodiscard]] std::string file(const std::string& name, const std::string& text) const {
    const auto path = (folder.path() / name).string();
    std::ofstream(path, std::ios::binary) << text;
    chmod(path.c_str(), 0600);
    return path;
  }
  [[nodiscard]] std::string key_file() const { return file("key", std::string(63, '0') + "3\n"); }

  TempFolder folder;
};

std::int64_t lines_in(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

TEST_F(QueryPublish, WhatAFilePublishesAQueryPrintsLineByLine) {
  TodokeUp node(folder.path(), {"--limits.rates", "off"});
  node.wait_ready();
  const auto key = nostr::SecretKey::generate();
  std::string text;
  for (int i = 0; i < 200; ++i) text += std::string(note(key, std::to_string(i)).json()) + "\n";
  const auto events = file("events.jsonl", text);
  const auto sent = publish({events});
  EXPECT_EQ(sent.code, 0) << sent.err;
  EXPECT_THAT(sent.err, HasSubstr("200 published, 0 there already, 0 refused, 0 unreadable"));
  EXPECT_THAT(publish({events}).err, HasSubstr("0 published, 200 there already"));

  const auto found = query({R"({"#t":["kukuri:global"],"limit":500})"});
  EXPECT_EQ(found.code, 0) << found.err;
  auto sorted = [](const std::string& lines) {
    std::vector<std::string> all;
    std::istringstream in(lines);
    for (std::string line; std::getline(in, line);) all.push_back(line);
    std::sort(all.begin(), all.end());
    return all;
  };
  EXPECT_EQ(sorted(found.out), sorted(text));
  EXPECT_EQ(query({kGlobalFilter, "--count", "--relay", node.url()}).out, "{\"count\":200}\n");
}

TEST_F(QueryPublish, ARelayThatTakesFewEventsAMinuteGetsThemAllInTheEnd) {
  TodokeUp node(folder.path(), {"--limits.events_per_minute", "90"});
  node.wait_ready();
  const auto key = nostr::SecretKey::generate();
  std::string text;
  for (int i = 0; i < 100; ++i) text += std::string(note(key, std::to_string(i)).json()) + "\n";
  const auto sent = publish({file("events.jsonl", text)});
  EXPECT_EQ(sent.code, 0) << sent.err;
  EXPECT_THAT(sent.err, HasSubstr("100 published, 0 there already, 0 refused, 0 unreadable"));
  EXPECT_GT(node.metric(R"(todoke_rate_limited_total{verb="event"})"), 0);
}

TEST_F(QueryPublish, RefusedEventsAndBrokenLinesAreToldByNumberAndTheRestGoesOn) {
  TodokeUp node(folder.path());
  node.wait_ready();
  const auto key = nostr::SecretKey::generate();
  auto forged = std::string(note(key, "before").json());
  forged.replace(forged.find("before"), 6, "behind");
  const auto lines = std::string(note(key, "first").json()) + "\nnonsense\n\n" + forged + "\n{\"id\":1}\n" +
                     std::string(note(key, "elsewhere", {{"t", "kukuri:" + std::string(64, 'e')}}).json()) +
                     "\n" + std::string(note(key, "last").json());
  const auto sent = publish({file("mixed", lines)});
  EXPECT_EQ(sent.code, 1);
  EXPECT_THAT(sent.err, HasSubstr("line 2: invalid: message is not JSON\n"));
  EXPECT_THAT(sent.err, testing::ContainsRegex("line 4 \\([0-9a-f]{64}\\): invalid: bad id\n"));
  EXPECT_THAT(sent.err, HasSubstr("line 5: invalid: "));
  EXPECT_THAT(sent.err, testing::ContainsRegex("line 6 \\([0-9a-f]{64}\\): restricted: topic not enabled\n"));
  EXPECT_THAT(sent.err, HasSubstr("2 published, 0 there already, 2 refused, 2 unreadable\n"));
  EXPECT_EQ(lines_in(query({kGlobalFilter}).out), 2);
}

TEST_F(QueryPublish, AnEventIsMadeAndSignedHere) {
  TodokeUp node(folder.path());
  node.wait_ready();
  const auto made = publish({"--key-file", key_file(), "--kind", "1111", "--content", "made \"here\"",
                             "--tag", "t=kukuri:global", "--tag", R"(["r","https://example.org","x"])"});
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr(R"("content":"made \"here\"")"));
  EXPECT_THAT(made.out, HasSubstr(R"(["r","https://example.org","x"])"));
  EXPECT_EQ(query({R"({"#t":["kukuri:global"],"kinds":[1111]})"}).out, made.out);
  const auto refused = publish({"--key-file", key_file(), "--content", "no topic"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, HasSubstr("invalid: missing topic"));
}

TEST_F(QueryPublish, AKeyLogsInWhereTheRelayAsksForIt) {
  TodokeUp node(folder.path(), {"--auth.mode", "required"});
  node.wait_ready();
  const auto refused = query({kGlobalFilter});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("the relay refuses: auth-required: authenticate first"));
  const std::vector<std::string> hello{"--key-file", key_file(), "--auth-key-file", key_file(),
                                       "--content",  "hello",    "--tag",           "t=kukuri:global"};
  EXPECT_THAT(publish(hello).err, HasSubstr("restricted: subscription-required"));
  const auto key = nostr::SecretKey::from_hex(std::string(63, '0') + "3");
  node.sql(
      "INSERT INTO cn_user.topic_subscriptions (topic_id, subscriber_pubkey) VALUES ('kukuri:global', '" +
      key.value().pubkey().hex() + "')");
  const auto made = publish(hello);
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(query({kGlobalFilter, "--auth-key-file", key_file()}).out, made.out);
}

TEST_F(QueryPublish, AStreamGoesOnWithWhatIsNew) {
  TodokeUp node(folder.path());
  node.wait_ready();
  NostrClient client(node.url());
  const auto key = nostr::SecretKey::generate();
  ASSERT_TRUE(client.publish(note(key, "stored")).accepted);
  ChildProcess stream(command("query", {kGlobalFilter, "--stream"}), {});
  stream.wait_for_output("\"stored\"");
  ASSERT_TRUE(client.publish(note(key, "live")).accepted);
  stream.wait_for_output("\"live\"");
  stream.kill(SIGINT);
  EXPECT_EQ(lines_in(stream.wait().out), 2);
}

TEST_F(QueryPublish, WhatCanNotWorkIsSaid) {
  EXPECT_THAT(query({kGlobalFilter}).err, HasSubstr("no relay runs on "));
  EXPECT_EQ(query({"[1]"}).code, 2);
  EXPECT_EQ(query({"{\"kinds\":[1}"}).code, 2);
  EXPECT_EQ(query({"{}", "--count", "--stream"}).code, 2);
  EXPECT_EQ(publish({"--content", "x"}).code, 2);
  EXPECT_EQ(publish({"--key-file", key_file(), "--tag", "nonsense"}).code, 2);
  EXPECT_THAT(publish({"--key-file", file("bad", "nsec1abc"), "--tag", "t=x"}).err,
              HasSubstr("holds no secret key"));
  EXPECT_THAT(publish({"/nowhere/events.jsonl"}).err, HasSubstr("/nowhere/events.jsonl can't be read"));
  EXPECT_EQ(query({"{}", "--relay", "ws://127.0.0.1:1/"}).code, 1);
  EXPECT_THAT(query({"{}", "--relay", "http://127.0.0.1:1/"}).err,
              HasSubstr("is not a URL of ws:// or wss://"));
  const auto open = file("open", std::string(63, '0') + "3");
  chmod(open.c_str(), 0644);
  EXPECT_THAT(publish({"--key-file", open, "--relay", "ws://127.0.0.1:1/"}).err, HasSubstr("chmod 600"));
}

}  // namespace
}  // namespace todoke::test

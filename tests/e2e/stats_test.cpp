// `todoke stats` beside a running node.
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/nostr_client.hpp"
#include "harness/todoke_process.hpp"

namespace todoke::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

TEST(Stats, WhatIsStoredIsToldByTableTopicAndKindWithItsGrowth) {
  const TempFolder folder;
  TodokeUp node(folder.path());
  node.wait_ready();
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.begin(), todoke_binary());
    words.insert(words.end(), {"--data_dir", folder.path().string()});
    return run_command(words);
  };
  const auto empty = run({"stats"});
  EXPECT_EQ(empty.code, 0) << empty.err;
  EXPECT_THAT(empty.out, HasSubstr("events      0 stored\n"));

  const auto key = nostr::SecretKey::generate();
  const auto topic = "kukuri:" + std::string(64, 'a');
  ASSERT_EQ(run({"topic", "enable", topic}).code, 0);
  {
    std::ofstream file(folder.path() / "events");
    for (int i = 0; i < 30; ++i) file << note(key, std::to_string(i)).json() << "\n";
    for (int i = 0; i < 5; ++i)
      file << note(key, "both", {{"t", "kukuri:global"}, {"t", topic}, {"n", std::to_string(i)}}, 7).json()
           << "\n";
  }
  wait_until("the relay to take the topic", [&] { return node.metric("todoke_topics_enabled") == 2; });
  ASSERT_EQ(run({"import", folder.path() / "events"}).code, 0);

  const auto text = run({"stats"}).out;
  EXPECT_THAT(text, HasSubstr("events      35 stored\n"));
  EXPECT_THAT(text, ContainsRegex("growth +840 events a day, .*the last 0.0 days"));
  EXPECT_THAT(
      text,
      ContainsRegex("disk .* free, [0-9]+ days left\ndays left +[0-9]+ if nothing is purged \\(disk\\)\n"));
  EXPECT_THAT(text, ContainsRegex("cn_relay.events_kept  FOR VALUES IN"));

  const auto json = run({"stats", "--json"}).out;
  EXPECT_THAT(json, HasSubstr(R"("events":35,"sample_percent":100)"));
  EXPECT_THAT(
      json,
      ContainsRegex(
          R"("topics":\[\{"name":"kukuri:global","events":35,"bytes":[1-9][0-9]+\},\{"name":"kukuri:a+")"));
  EXPECT_THAT(
      json,
      ContainsRegex(R"("kinds":\[\{"name":"1","events":30,"bytes":[1-9][0-9]+\},\{"name":"7","events":5,)"));
  EXPECT_THAT(json, HasSubstr(R"({"name":"cn_relay.events","bytes":)"));
  EXPECT_THAT(json, HasSubstr(R"("days_left":)"));
}

TEST(Stats, DaysLeftEndWithTheCapacityThatIsFullFirst) {
  const TempFolder folder;
  TodokeUp node(folder.path(), {"--capacity.max_events", "100", "--capacity.max_bytes", "1GiB"});
  node.wait_ready();
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.begin(), todoke_binary());
    words.insert(words.end(), {"--data_dir", folder.path().string()});
    return run_command(words);
  };
  const auto key = nostr::SecretKey::generate();
  {
    std::ofstream file(folder.path() / "events");
    // Profiles are kept without weeks, so no counter tells when they came.
    for (int i = 0; i < 10; ++i)
      file << note(nostr::SecretKey::generate(), "{}", {{"t", "kukuri:global"}}, 0).json() << "\n"
           << note(key, std::to_string(i)).json() << "\n";
  }
  ASSERT_EQ(run({"import", folder.path() / "events"}).code, 0);
  const auto text = run({"stats"}).out;
  EXPECT_THAT(text, ContainsRegex("growth +480 events a day"));
  EXPECT_THAT(text,
              ContainsRegex("capacity +[0-9.]+ KiB of 1.0 GiB \\(capacity.max_bytes\\), [0-9]+ days left\n"));
  EXPECT_THAT(text, ContainsRegex("capacity +20 of 100 events \\(capacity.max_events\\), 0 days left\n"));
  EXPECT_THAT(text, HasSubstr("days left   0 if nothing is purged (capacity.max_events)\n"));
  EXPECT_THAT(run({"stats", "--json"}).out,
              ContainsRegex(R"("days_left_of":\{"capacity.max_bytes":[0-9.e+]+,"capacity.max_events":0.16)"));
}

TEST(Stats, TopicsAndGrowthAreCountedAndNotSampled) {
  const TempFolder folder;
  TodokeUp node(folder.path());
  node.wait_ready();
  // What only the counters know.
  node.sql(
      "INSERT INTO cn_relay.topic_usage (topic_id, week, events, bytes) SELECT t, date_trunc('week', now(), "
      "'UTC'), 7000, 7000000 "
      "FROM (VALUES (''), ('kukuri:global')) v (t)");
  const auto exit = run_command({todoke_binary(), "stats", "--json", "--data_dir", folder.path().string()});
  EXPECT_THAT(exit.out, HasSubstr(R"("events":7000,"sample_percent":100)"));
  EXPECT_THAT(exit.out, HasSubstr(R"("events_per_day":168000)"));
  EXPECT_THAT(exit.out, HasSubstr(R"("topics":[{"name":"kukuri:global","events":7000,"bytes":)"));
}

TEST(Stats, WithoutANodeItSaysSo) {
  const TempFolder folder;
  const auto exit = run_command({todoke_binary(), "stats", "--data_dir", folder.path().string()});
  EXPECT_EQ(exit.code, 1);
  EXPECT_THAT(exit.err, HasSubstr("no node runs on"));
}

}  // namespace
}  // namespace todoke::test

// `todoke export` and `todoke import`, beside a running node and without one.
#include <algorithm>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/nostr_client.hpp"
#include "harness/todoke_process.hpp"

namespace todoke::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using Lines = std::vector<std::string>;
using Tags = std::vector<std::vector<std::string>>;

constexpr auto* kGlobal = "kukuri:global";
constexpr std::int64_t kLongAgo = 1'500'000'000;

Exit todoke_in(const TempFolder& folder, Lines words) {
  words.insert(words.begin(), todoke_binary());
  words.insert(words.end(), {"--data_dir", folder.path().string()});
  return run_command(words);
}

Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string joined(const Lines& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

Lines sorted(Lines lines) {
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::string line_of(const nostr::Event& event) {
  return std::string(event.json());
}

class ExportImport : public testing::Test {
 protected:
  [[nodiscard]] std::string file(const std::string& name, const std::string& text) const {
    const auto path = (files.path() / name).string();
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  [[nodiscard]] std::string path(const std::string& name) const { return (files.path() / name).string(); }

  nostr::Event event(std::string content, Tags more = {}, nostr::Kind kind = 1,
                     std::int64_t at = kLongAgo) const {
    more.push_back({"t", kGlobal});
    return note(key, std::move(content), std::move(more), kind, at);
  }

  const nostr::SecretKey key = nostr::SecretKey::generate();
  TempFolder files;
  TempFolder folder;
};

TEST_F(ExportImport, WhatIsExportedAndImportedElsewhereIsTheSameSet) {
  const auto doomed = event("doomed");
  const Lines sent{line_of(event("plain")),
                   line_of(event("escaped \" \\ \n \t and \xE2\x98\x83 and \x01")),
                   line_of(event(std::string("zero \0 byte", 11), {{"x", std::string("a\0b", 3)}})),
                   line_of(event("{\"name\":\"old\"}", {}, 0)),
                   line_of(event("{\"name\":\"new\"}", {}, 0, kLongAgo + 1)),
                   line_of(event("article", {{"d", "one"}}, 30'023)),
                   line_of(event("private", {{"scope", "friend"}, {"epoch", "1"}})),
                   line_of(doomed),
                   line_of(event("", {{"e", doomed.id().hex()}}, 5)),
                   line_of(event("last", {{"r", "https://example.org/?a=b&c"}}))};
  auto kept = sent;
  kept.erase(kept.begin() + 7);
  kept.erase(kept.begin() + 3);

  ASSERT_EQ(todoke_in(folder, {"migrate"}).code, 0);
  const auto in = todoke_in(folder, {"import", file("sent", joined(sent))});
  EXPECT_EQ(in.code, 0) << in.err;
  EXPECT_THAT(in.err, HasSubstr("10 events stored, 0 there already"));
  const auto out = todoke_in(folder, {"export"});
  EXPECT_EQ(out.code, 0) << out.err;
  EXPECT_EQ(sorted(lines_of(out.out)), sorted(kept));
  EXPECT_THAT(out.err, testing::ContainsRegex("8 events exported, .*go on later with --after [0-9]+\n"));

  EXPECT_EQ(todoke_in(folder, {"export", "--gzip", "--out", path("events.gz")}).code, 0);
  EXPECT_EQ(todoke_in(folder, {"export", "--zstd", "--out", path("events.zst")}).code, 0);
  for (const auto* packed : {"events.gz", "events.zst"}) {
    const TempFolder other;
    TodokeUp node(other.path());
    node.wait_ready();
    EXPECT_EQ(todoke_in(other, {"import", path(packed)}).code, 0);
    EXPECT_EQ(sorted(lines_of(todoke_in(other, {"export"}).out)), sorted(kept)) << packed;
    EXPECT_EQ(node.sql("SELECT DISTINCT source FROM cn_relay.events"), "import");
  }
}

TEST_F(ExportImport, ABadLineIsToldByNumberSkippedAndCounted) {
  TodokeUp node(folder.path());
  node.wait_ready();
  const auto good = event("good");
  auto forged = line_of(event("before"));
  forged.replace(forged.find("before"), 6, "behind");
  const auto stranger = note(key, "elsewhere", {{"t", "kukuri:" + std::string(64, 'e')}});
  auto unsigned_event = line_of(event("unsigned"));
  const auto sig = unsigned_event.find("\"sig\":\"") + 7;
  unsigned_event.replace(sig, 4, unsigned_event.substr(sig, 4) == "0000" ? "1111" : "0000");
  const auto path =
      file("mixed", joined({line_of(good), "nonsense", "", forged, line_of(stranger), unsigned_event,
                            line_of(event("spark", {}, 20'001)), std::string(2'000'000, 'x'),
                            line_of(event("future", {}, 1, unix_now() + 100'000)), line_of(good)}));
  const auto in = todoke_in(folder, {"import", path});
  EXPECT_EQ(in.code, 0) << in.err;
  for (const auto* told :
       {"line 2: invalid: message is not JSON\n", "line 4: invalid: bad id\n",
        "line 5: restricted: topic not enabled\n", "line 6: invalid: bad signature\n",
        "line 7: ephemeral: such events are not stored\n", "line 8: invalid: message too long\n",
        "line 9: invalid: created_at out of range\n",
        "1 events stored, 1 there already, 0 older than a stored version, 0 deleted by their author, 7 lines "
        "refused"}) {
    EXPECT_THAT(in.err, HasSubstr(told));
  }
  const auto trusted = todoke_in(folder, {"import", path, "--no-verify"});
  EXPECT_THAT(trusted.err, HasSubstr("line 4: invalid: bad id\n")) << "an id is never trusted";
  EXPECT_THAT(trusted.err, HasSubstr("1 events stored, 2 there already"));
  const auto missing = todoke_in(folder, {"import", "/nowhere/events"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, HasSubstr("/nowhere/events can't be read"));
}

TEST_F(ExportImport, SubscribersOfARunningNodeSeeImportedEventsLive) {
  TodokeUp node(folder.path());
  node.wait_ready();
  NostrClient client(node.url());
  client.request("s", R"({"#t":["kukuri:global"],"limit":0})");
  const auto imported = event("from a file");
  ASSERT_EQ(todoke_in(folder, {"import", file("one", line_of(imported))}).code, 0);
  EXPECT_EQ(id_in(client.live("s")), imported.id().hex());
  EXPECT_EQ(client.publish(imported).text, "duplicate: already stored");
}

TEST_F(ExportImport, AnImportGoesByTheConfigurationOfTheRunningNodeAndTakesOldEvents) {
  TodokeUp node(folder.path(), {"--relay.topic_policy", "open", "--relay.created_at_past_max", "1h"});
  node.wait_ready();
  NostrClient client(node.url());
  const auto old = note(key, "no topic", {}, 1, kLongAgo);
  EXPECT_EQ(client.publish(old).text, "invalid: created_at out of range");
  EXPECT_THAT(todoke_in(folder, {"import", file("old", line_of(old))}).err, HasSubstr("1 events stored"));
}

TEST_F(ExportImport, AnImportThatWasKilledIsRepeatedWithoutHarm) {
  TodokeUp node(folder.path());
  node.wait_ready();
  Lines lines;
  for (int i = 0; i < 3'000; ++i) lines.push_back(line_of(event(std::to_string(i))));
  const auto path = file("many", joined(lines));
  {
    ChildProcess killed({todoke_binary(), "import", path, "--data_dir", folder.path().string()}, {});
    wait_until("some events to be stored", [&] {
      return node.sql("SELECT count(*) > 0 FROM cn_relay.events") == "t" || killed.has_ended();
    });
    killed.kill(SIGKILL);
    killed.wait();
  }
  const auto again = todoke_in(folder, {"import", path});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(sorted(lines_of(todoke_in(folder, {"export"}).out)), sorted(lines));
  EXPECT_EQ(node.sql("SELECT count(*) = count(DISTINCT event_id) FROM cn_relay.events_outbox"), "t");
  EXPECT_THAT(todoke_in(folder, {"import", path, "--skip", "2990"}).err,
              HasSubstr("0 events stored, 10 there already"));
}

// Makes the database refuse events whose content begins with `refused`.
void refuse_events(NodeProcess& node, const std::string& sqlstate) {
  node.sql(
      "CREATE FUNCTION cn_relay.test_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.content "
      "LIKE 'refused%' "
      "THEN RAISE EXCEPTION 'refused by the test' USING ERRCODE = '" +
      sqlstate +
      "'; END IF; RETURN NEW; END $$; CREATE TRIGGER test_refuse BEFORE INSERT ON cn_relay.events FOR EACH "
      "ROW "
      "EXECUTE FUNCTION cn_relay.test_refuse()");
}

TEST_F(ExportImport, TheHintNeverPassesOverALineThatTheDatabaseDidNotTake) {
  TodokeUp node(folder.path());
  node.wait_ready();
  refuse_events(node, "22023");
  Lines few{line_of(event("a")), line_of(event("b")), line_of(event("refused")), line_of(event("c"))};
  const auto some = todoke_in(folder, {"import", file("few", joined(few))});
  EXPECT_EQ(some.code, 1);
  EXPECT_THAT(some.err, HasSubstr("line 3: error: not stored, the database did not take it\n"));
  EXPECT_THAT(some.err, HasSubstr("3 events stored"));
  EXPECT_THAT(some.err, HasSubstr("go on with --skip 2\n"));

  // So many that the import gives up, with good ones before and behind.
  Lines many;
  for (int i = 0; i < 600; ++i) many.push_back(line_of(event("before " + std::to_string(i))));
  for (int i = 0; i < 150; ++i) many.push_back(line_of(event("refused " + std::to_string(i))));
  for (int i = 0; i < 6'000; ++i) many.push_back(line_of(event("behind " + std::to_string(i))));
  const auto path = file("many", joined(many));
  const auto stopped = todoke_in(folder, {"import", path});
  EXPECT_EQ(stopped.code, 1);
  EXPECT_THAT(stopped.err, HasSubstr("go on with --skip 600\n"));
  node.sql("DROP TRIGGER test_refuse ON cn_relay.events");
  const auto rest = todoke_in(folder, {"import", path, "--skip", "600"});
  EXPECT_EQ(rest.code, 0) << rest.err;
  EXPECT_EQ(node.sql("SELECT count(*) FROM cn_relay.events"), std::to_string(3 + many.size()));
}

TEST_F(ExportImport, AnImportWaitsForRoomOnTheDatabasesDiskAndGoesOn) {
  TodokeUp node(folder.path());
  node.wait_ready();
  refuse_events(node, "53100");
  Lines lines{line_of(event("refused at first"))};
  for (int i = 0; i < 5'000; ++i) lines.push_back(line_of(event(std::to_string(i))));
  const auto path = file("many", joined(lines));
  ChildProcess import({todoke_binary(), "import", path, "--data_dir", folder.path().string()}, {});
  import.wait_for_output("the database's disk is full: waiting for room");
  node.sql("DROP TRIGGER test_refuse ON cn_relay.events");
  const auto exit = import.wait();
  EXPECT_THAT(exit.err, HasSubstr("the database's disk has room again"));
  EXPECT_EQ(exit.code, 1) << "what was under way was not stored";
  EXPECT_THAT(exit.err, HasSubstr("go on with --skip 0\n"));
  const auto again = todoke_in(folder, {"import", path});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.err, Not(HasSubstr(" 0 there already")))
      << "those that waited were stored the first time";
  EXPECT_EQ(node.sql("SELECT count(*) FROM cn_relay.events"), std::to_string(lines.size()));
}

TEST_F(ExportImport, AFileThatIsCutOffStoresItsLinesAndFails) {
  TodokeUp node(folder.path());
  node.wait_ready();
  Lines lines;
  for (int i = 0; i < 2'000; ++i) lines.push_back(line_of(event(std::to_string(i))));
  ASSERT_EQ(todoke_in(folder, {"import", file("all", joined(lines))}).code, 0);
  ASSERT_EQ(todoke_in(folder, {"export", "--gzip", "--out", path("whole.gz")}).code, 0);
  std::ifstream whole(path("whole.gz"), std::ios::binary);
  std::stringstream bytes;
  bytes << whole.rdbuf();
  const auto cut =
      todoke_in(folder, {"import", file("cut.gz", bytes.str().substr(0, bytes.str().size() / 2))});
  EXPECT_EQ(cut.code, 1);
  EXPECT_THAT(cut.err, testing::ContainsRegex("0 events stored, [1-9][0-9]+ there already"));
  EXPECT_THAT(cut.err, HasSubstr("is cut off after line"));
  EXPECT_THAT(cut.err, testing::ContainsRegex("go on with --skip [1-9][0-9]*\n"));
}

TEST_F(ExportImport, AnExportTakesFiltersAndGoesOnAfterItsCursor) {
  TodokeUp node(folder.path());
  node.wait_ready();
  const Lines first{line_of(event("a")), line_of(event("b", {}, 1'111)), line_of(event("c", {}, 7))};
  ASSERT_EQ(todoke_in(folder, {"import", file("first", joined(first))}).code, 0);
  EXPECT_EQ(
      lines_of(
          todoke_in(folder, {"export", "--filter", R"({"kinds":[1]})", "--filter", R"({"kinds":[7]})"}).out),
      (Lines{first[0], first[2]}));
  const auto err = todoke_in(folder, {"export"}).err;
  const auto cursor = err.substr(err.rfind(' ') + 1, err.size() - err.rfind(' ') - 2);
  EXPECT_EQ(todoke_in(folder, {"export", "--after", cursor}).out, "");
  const auto later = line_of(event("later"));
  ASSERT_EQ(todoke_in(folder, {"import", file("later", later)}).code, 0);
  EXPECT_EQ(todoke_in(folder, {"export", "--after", cursor}).out, later + "\n");

  EXPECT_EQ(todoke_in(folder, {"export", "--filter", R"({"limit":1})"}).code, 2);
  EXPECT_EQ(todoke_in(folder, {"export", "--filter", "nonsense"}).code, 2);
  EXPECT_EQ(todoke_in(folder, {"export", "--gzip", "--zstd"}).code, 2);
  EXPECT_EQ(todoke_in(folder, {"import"}).code, 2);
  EXPECT_EQ(todoke_in(folder, {"export", "--out", "/dev/full"}).code, 1);
  const TempFolder empty;
  EXPECT_THAT(todoke_in(empty, {"export"}).err, HasSubstr("`todoke migrate` makes one"));
}

}  // namespace
}  // namespace todoke::test

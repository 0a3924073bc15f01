#include "index/search.hpp"

#include <limits>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "index/rig.hpp"

namespace todoke::index {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// The manual clock starts here.
constexpr std::int64_t kNow = 1'700'000'000;
constexpr std::int64_t kDay = 86'400;

void write_many(Rig& rig, int count) {
  rig.sql(fmt::format(R"(
    INSERT INTO cn_relay.events (event_id, pubkey, kind, created_at, tags, content, sig, ingested_seq, source, topics)
    SELECT encode(sha256(i::text::bytea), 'hex'), repeat('a', 64), 1, {} - (i * 7919 % 100) * 3600, '[]',
      repeat('common ', 1 + i % 3) || 'word ' || i, '', i, 'ws', '{{kukuri:global}}'
    FROM generate_series(1, {}) i)",
                      kNow, count));
  rig.rebuild_and_swap();
}

// All pages; `between` is called after each.
std::vector<std::string> all_pages(Rig& rig, SearchQuery query, const std::function<void()>& between = {}) {
  std::vector<std::string> ids;
  do {
    const auto page = rig.page(query);
    if (!page) throw std::runtime_error(page.error().message);
    for (const auto& hit : page->hits) ids.push_back(hit.event_id);
    query.cursor = page->cursor;
    if (between) between();
  } while (!query.cursor.empty());
  return ids;
}

outbox::SearchResult find_at_port(Rig& rig, const std::string& text, std::size_t limit) {
  return run_task([&]() -> Task<outbox::SearchResult> {
    IndexSearch port(rig.pool(), rig.clock());
    outbox::SearchRequest request;
    request.text = text;
    request.limit = limit;
    co_return co_await port.find(request, soon());
  });
}

TEST_F(IndexTest, TwoCharacterWordsAreFoundInsideTextWithoutSpaces) {
  rig_.write({.content = "昨日は東京都庁で写真を撮りました"});
  rig_.write({.content = "我们在北京大学学习人工智能"});
  rig_.write({.content = "오늘은 서울에서 친구를 만났습니다"});
  rig_.apply();
  EXPECT_THAT(rig_.find("写真"), ElementsAre("昨日は東京都庁で写真を撮りました"));
  EXPECT_THAT(rig_.find("東京都庁"), ElementsAre("昨日は東京都庁で写真を撮りました"));
  EXPECT_THAT(rig_.find("智能"), ElementsAre("我们在北京大学学习人工智能"));
  EXPECT_THAT(rig_.find("서울 친구"), ElementsAre("오늘은 서울에서 친구를 만났습니다"));
  EXPECT_THAT(rig_.find("都写"), IsEmpty()) << "characters that do not stand together";
  EXPECT_THAT(rig_.find("東京写真"), IsEmpty()) << "both words are there, but not in a row";
}

TEST_F(IndexTest, OneCharacterIsFoundWhereverItStands) {
  rig_.write({.content = "猫がいる"});
  rig_.write({.content = "黒い猫"});
  rig_.write({.content = "猫"});
  rig_.write({.content = "三毛猫cafe"});
  rig_.write({.content = "犬"});
  rig_.apply();
  EXPECT_THAT(rig_.find("猫"), UnorderedElementsAre("猫がいる", "黒い猫", "猫", "三毛猫cafe"));
  EXPECT_THAT(rig_.find("猫cafe"), ElementsAre("三毛猫cafe"));
}

TEST_F(IndexTest, EnglishIsFoundByWordsAndTheLastWordByItsBeginning) {
  rig_.write({.content = "Category theory for cats"});
  rig_.write({.content = "The concatenation of strings"});
  rig_.apply();
  EXPECT_THAT(rig_.find("cat"), ElementsAre("Category theory for cats"));
  EXPECT_THAT(rig_.find("cat."), IsEmpty()) << "a word that has ended is a whole word";
  EXPECT_THAT(rig_.find("cat theory"), IsEmpty());
  EXPECT_THAT(rig_.find("THEORY cats"), ElementsAre("Category theory for cats"));
}

TEST_F(IndexTest, FormsOfWidthAndCaseAreTheSame) {
  rig_.write({.content = "Ｎｏｓｔｒ ﾘﾚｰ STRASSE"});
  rig_.apply();
  EXPECT_EQ(rig_.find("nostr リレー straße").size(), 1U);
}

TEST_F(IndexTest, QuerySyntaxOfTheDatabaseMeansNothing) {
  rig_.write({.content = "plain"});
  rig_.apply();
  EXPECT_THAT(rig_.find("plain' | 'x"), IsEmpty());
  EXPECT_THAT(rig_.find("!nothing & ('plain':* <-> \\"), IsEmpty());
  EXPECT_THAT(rig_.find("!!! ()"), IsEmpty()) << "text without a word finds nothing";
}

TEST_F(IndexTest, TheFiltersOfAQueryAllHold) {
  rig_.write({.content = "match one", .topics = {"a"}, .created_at = kNow - 10});
  rig_.write(
      {.content = "match two", .kind = 30023, .topics = {"a", "b"}, .created_at = kNow - 20, .author = 'b'});
  rig_.write({.content = "match three", .topics = {"c"}, .created_at = kNow - 30, .author = 'c'});
  rig_.apply();
  EXPECT_EQ(rig_.find("match").size(), 3U);
  EXPECT_THAT(rig_.find_by({.text = "match", .topics = {{"b", "c"}}}),
              UnorderedElementsAre("match two", "match three"));
  EXPECT_THAT(rig_.find_by({.text = "match", .kinds = {{30023}}}), ElementsAre("match two"));
  EXPECT_THAT(rig_.find_by({.text = "match", .authors = {{std::string(64, 'c')}}}),
              ElementsAre("match three"));
  EXPECT_THAT(rig_.find_by({.text = "match", .since = kNow - 20}),
              UnorderedElementsAre("match one", "match two"));
  EXPECT_THAT(rig_.find_by({.text = "match", .until = kNow - 20}),
              UnorderedElementsAre("match two", "match three"));
  EXPECT_THAT(rig_.find_by({.text = "match", .topics = {{"a"}}, .kinds = {{1}}, .since = kNow - 15}),
              ElementsAre("match one"));
  EXPECT_THAT(rig_.find_by({.text = "match", .topics = {std::vector<std::string>{}}}), IsEmpty());
}

TEST_F(IndexTest, TagsAndIdsOfAQueryHold) {
  const std::string long_value(300, 'v');
  const auto first =
      rig_.write({.content = "match one",
                  .tags_json = R"([["t","music"],["e","x","wss://r"],["E","y"],["title","t"]])"});
  rig_.write(
      {.content = "match two", .tags_json = R"([["t","music"],["t","news"],["e","y"],["r","a\u0000b"]])"});
  rig_.write({.content = "match three", .tags_json = fmt::format(R"([["t"],["x","{}"]])", long_value)});
  rig_.apply();
  const auto find_tags = [&](std::vector<outbox::SearchTag> tags) {
    return rig_.find_by({.text = "match", .tags = std::move(tags)});
  };
  EXPECT_THAT(find_tags({{'t', {"music"}}}), UnorderedElementsAre("match one", "match two"));
  EXPECT_THAT(find_tags({{'t', {"news", "other"}}}), ElementsAre("match two"));
  EXPECT_THAT(find_tags({{'t', {"music"}}, {'e', {"x"}}}), ElementsAre("match one"));
  EXPECT_THAT(find_tags({{'t', {"news"}}, {'e', {"x"}}}), IsEmpty());
  EXPECT_THAT(find_tags({{'E', {"y"}}}), ElementsAre("match one")) << "letters have a case";
  EXPECT_THAT(find_tags({{'r', {std::string("a\0b", 3)}}}), ElementsAre("match two"));
  EXPECT_THAT(find_tags({{'x', {long_value}}}), ElementsAre("match three"));
  EXPECT_THAT(find_tags({{'t', {}}}), IsEmpty());
  EXPECT_THAT(rig_.find_by({.text = "match", .ids = {{first, std::string(64, '0')}}}),
              ElementsAre("match one"));
  EXPECT_THAT(rig_.find_by({.text = "other", .ids = {{first}}}), IsEmpty());
  rig_.rebuild_and_swap();
  EXPECT_THAT(find_tags({{'t', {"music"}}, {'e', {"x"}}}), ElementsAre("match one")) << "after a rebuild";
}

TEST_F(IndexTest, ATimeAtTheEndOfTheNumbersBreaksNoSearch) {
  rig_.write({.content = "age now", .created_at = kNow});
  rig_.write({.content = "age none", .created_at = std::numeric_limits<std::int64_t>::min()});
  rig_.apply();
  EXPECT_THAT(rig_.find("age"), ElementsAre("age now", "age none"));
}

TEST_F(IndexTest, WithoutTextTheNewestComeFirst) {
  rig_.write({.content = "older", .created_at = kNow - 20});
  rig_.write({.content = "newer", .created_at = kNow - 10});
  rig_.apply();
  EXPECT_THAT(rig_.find(""), ElementsAre("newer", "older"));
}

TEST_F(IndexTest, RankGoesByTextAndByAge) {
  rig_.write({.content = "about gardens",
              .kind = 30023,
              .created_at = kNow - 60,
              .tags_json = R"([["title","Tulips"]])"});
  rig_.write({.content = "tulips here", .created_at = kNow - 60});
  rig_.write({.content = "tulips long ago", .created_at = kNow - 60 * kDay});
  rig_.apply();
  EXPECT_THAT(rig_.find("tulips"), ElementsAre("about gardens", "tulips here", "tulips long ago"));
}

TEST_F(IndexTest, WhatHasLostItsEffectIsHiddenBeforeTheLogIsRead) {
  for (const auto* name : {"deleted", "superseded", "expired", "visible"}) {
    rig_.write({.content = fmt::format("hide {}", name)});
  }
  rig_.apply();
  rig_.sql(
      "UPDATE cn_relay.events SET deleted_at = now() WHERE content LIKE '%deleted';"
      "UPDATE cn_relay.events SET superseded_at = now() WHERE content LIKE '%superseded';"
      "UPDATE cn_relay.events SET expires_at = now() - interval '1 s' WHERE content LIKE '%expired'");
  EXPECT_THAT(rig_.find("hide"), ElementsAre("hide visible"));
}

TEST_F(IndexTest, PagesHoldEveryMatchOnceInTheOrderOfTheRank) {
  write_many(rig_, 700);
  SearchQuery query;
  query.text = "common";
  query.limit = 1'000;
  const auto whole = all_pages(rig_, query);
  EXPECT_EQ(whole.size(), 700U);
  query.limit = 33;
  EXPECT_EQ(all_pages(rig_, query), whole);
}

TEST_F(IndexTest, PagesReachWhatIsBeyondTheFirstThousandMatches) {
  write_many(rig_, 2'500);
  SearchQuery query;
  query.text = "common";
  query.limit = 400;
  const auto ids = all_pages(rig_, query);
  EXPECT_EQ(ids.size(), 2'500U);
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), 2'500U);
}

TEST_F(IndexTest, PagesStayTheSameWhileTimePassesAndPostsComeAndGo) {
  write_many(rig_, 1'200);
  SearchQuery query;
  query.text = "common";
  query.limit = 100;
  const auto before = all_pages(rig_, query);
  int written = 0;
  auto during = all_pages(rig_, query, [&] {
    rig_.clock().advance(1h);
    rig_.write({.content = fmt::format("common newcomer {}", ++written), .created_at = kNow + written});
    rig_.write({.content = fmt::format("common latecomer {}", ++written), .created_at = kNow - 40 * 3600});
    rig_.apply();
  });
  const std::set<std::string> known(before.begin(), before.end());
  std::erase_if(during, [&](const std::string& id) { return !known.contains(id); });
  EXPECT_EQ(during, before);
}

TEST_F(IndexTest, WhatCanNotBeASearchIsRefused) {
  EXPECT_FALSE(rig_.page({.text = std::string(1'025, 'x')}));
  std::string words;
  for (int i = 0; i < 65; ++i) words += fmt::format("w{} ", i);
  EXPECT_FALSE(rig_.page({.text = words}));
  for (const auto* cursor : {"x", "1.5", "2.5......", "1.5.a.....", "1.5.7.zz....", "1.5......9"}) {
    SearchQuery query;
    query.cursor = cursor;
    EXPECT_FALSE(rig_.page(query)) << cursor;
  }
  SearchQuery query;
  query.authors.emplace(2'001, std::string(64, 'a'));
  EXPECT_FALSE(rig_.page(query));
  query = {};
  query.tags.resize(9, {'x', {"a"}});
  EXPECT_FALSE(rig_.page(query));
  query.tags = {{'x', std::vector<std::string>(2'001, "a")}};
  EXPECT_FALSE(rig_.page(query));
}

TEST_F(IndexTest, ThePortGivesIdsTheBestFirst) {
  const auto old = rig_.write({.content = "port", .created_at = kNow - 30 * kDay});
  const auto fresh = rig_.write({.content = "port", .created_at = kNow});
  rig_.apply();
  const auto found = find_at_port(rig_, "port", 10);
  EXPECT_THAT(found.ids, ElementsAre(fresh, old));
  EXPECT_FALSE(found.more);
  EXPECT_THAT(find_at_port(rig_, "port", 1).ids, ElementsAre(fresh));
  EXPECT_TRUE(find_at_port(rig_, "port", 1).more);
}

TEST_F(IndexTest, ThePortGoesOnPastTheFirstThousand) {
  write_many(rig_, 2'500);
  const auto all = find_at_port(rig_, "common", 5'000);
  EXPECT_EQ(std::set<std::string>(all.ids.begin(), all.ids.end()).size(), 2'500U);
  EXPECT_FALSE(all.more);
  const auto some = find_at_port(rig_, "common", 2'100);
  EXPECT_EQ(some.ids.size(), 2'100U);
  EXPECT_TRUE(some.more);
}

TEST_F(IndexTest, ThePortSaysThatThereMayBeMoreWhereMostIsNoLongerShown) {
  write_many(rig_, 12'000);
  rig_.sql("UPDATE cn_relay.events SET deleted_at = now() WHERE ingested_seq <> 12000");
  const auto found = find_at_port(rig_, "common", 10);
  EXPECT_TRUE(found.more);
}

}  // namespace
}  // namespace todoke::index

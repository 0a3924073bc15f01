// Random posts, random filters with `search`: what the relay finds through its index and what a naive matcher
// finds among all events must be the same. A failure prints its seed; TODOKE_TEST_SEED=<number> runs that one
// again.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "naive_matcher.hpp"
#include "support.hpp"

namespace todoke::test {
namespace {

constexpr std::size_t kPosts = 200;
constexpr std::size_t kSearches = 250;
constexpr std::size_t kSearchLimit = 60;  // low, so that it cuts

struct Post {
  NaiveEvent event;
  std::string content;
};

struct SearchFilter {
  NaiveFilter filter;
  std::string text;
  [[nodiscard]] std::string json() const {
    auto json = filter.json();
    json.pop_back();
    return fmt::format(R"({}{}"search":"{}"}})", json, json.size() > 1 ? "," : "", text);
  }
};

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// Every word is there, the last as the beginning of one.
bool has_words(const std::string& content, const std::string& text) {
  const auto there = words_of(content);
  const auto wanted = words_of(text);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const bool prefix = i + 1 == wanted.size();
    const bool found = std::any_of(there.begin(), there.end(), [&](const auto& word) {
      return prefix ? word.starts_with(wanted[i]) : word == wanted[i];
    });
    if (!found) return false;
  }
  return true;
}

bool is_searched(int kind) {
  return kind == 1 || kind == 1'111 || kind == 30'023;
}

// Few values of everything, so that they meet.
class SearchDice {
 public:
  SearchDice(std::uint64_t seed, bool open) : random_(seed), open_(open) {
    for (int i = 0; i < 4; ++i)
      keys_.push_back(SecretKey::from_hex(fmt::format("{:064x}", below(1 << 30) + 1)).value());
    for (const auto* digits : {"0", "1", "a", "f"}) hexes_.emplace_back(64, *digits);
    topics_ = {"kukuri:global", topic('1'), topic('2')};
  }

  Post post() {
    static constexpr nostr::Kind kKinds[] = {1, 1, 1, 1, 7, 1'111, 30'023};
    const auto kind = kKinds[below(std::size(kKinds))];
    Tags tags;
    if (kind == 30'023) tags.push_back({"d", std::to_string(++signed_)});
    if (!open_ || below(3) == 0) tags.push_back({"t", one_of(topics_)});
    for (std::size_t i = below(5); i > 0; --i) tags.push_back(tag());
    std::string content;
    for (std::size_t i = 1 + below(4); i > 0; --i) content += one_of(words_) + ' ';
    const auto time = kTime + static_cast<std::int64_t>(below(12));
    content += std::to_string(++signed_);
    const auto& key = one_of(keys_);
    const auto event = nostr::sign_event({time, kind, tags, content}, key);
    return {{hex_of(event), hex_of(key), kind, time, std::move(tags), std::string(event.json())}, content};
  }

  SearchFilter filter(const std::vector<Post>& posts) {
    SearchFilter search;
    auto& filter = search.filter;
    for (std::size_t i = below(3); i > 0; --i) {
      search.text += search.text.empty() ? one_of(words_) : ' ' + one_of(words_);
    }
    if (!search.text.empty()) {
      if (below(3) == 0) search.text += ' ';
      if (below(3) == 0) search.text = search.text.substr(0, 2);
    }
    if (below(6) == 0) {
      filter.ids.emplace();
      for (std::size_t i = below(12); i > 0; --i) filter.ids->push_back(one_of(posts).event.id);
    }
    if (below(4) == 0) {
      filter.authors.emplace();
      for (std::size_t i = below(12) == 0 ? 0 : 1 + below(3); i > 0; --i)
        filter.authors->push_back(below(8) == 0 ? one_of(hexes_) : hex_of(one_of(keys_)));
    }
    if (below(4) == 0) {
      filter.kinds.emplace();
      for (std::size_t i = below(12) == 0 ? 0 : 1 + below(3); i > 0; --i)
        filter.kinds->push_back(one_of(posts).event.kind);
    }
    if (!open_ || below(2) == 0) filter.tags['t'] = {one_of(open_ && below(2) == 0 ? values_ : topics_)};
    for (std::size_t i = below(3); i > 0; --i) {
      const auto letter = one_of(letters_);
      auto& values = filter.tags[letter];
      values.clear();
      for (std::size_t j = below(20) == 0 ? 0 : 1 + below(3); j > 0; --j) values.push_back(value_of(letter));
    }
    if (below(4) == 0) filter.since = kTime + static_cast<std::int64_t>(below(12));
    if (below(4) == 0) filter.until = kTime + static_cast<std::int64_t>(below(12));
    if (below(2) == 0) filter.limit = below(4) == 0 ? 1 + below(300) : 1 + below(12);
    return search;
  }

 private:
  std::size_t below(std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_);
  }
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[below(list.size())];
  }
  std::string value_of(char letter) { return one_of(letter == 'e' || letter == 'p' ? hexes_ : values_); }
  std::vector<std::string> tag() {
    if (below(6) == 0) return one_of(odd_tags_);
    const auto letter = one_of(letters_);
    return {std::string(1, letter), value_of(letter), one_of(values_)};
  }

  std::mt19937_64 random_;
  bool open_;
  std::uint64_t signed_ = 0;
  std::vector<SecretKey> keys_;
  std::vector<std::string> hexes_;
  std::vector<std::string> topics_;
  std::vector<char> letters_ = {'e', 'p', 'x', 'X', 'r'};
  std::vector<std::string> words_ = {"garden", "garlic", "river", "stone", "sea", "seaside"};
  std::vector<std::string> values_ = {"a", "b", "A", "", std::string("a\0b", 3), std::string(300, 'v')};
  std::vector<std::vector<std::string>> odd_tags_ = {{"x"},      {"xx", "a"}, {"", "a"},
                                                     {"t", "a"}, {"t", "b"},  {"t", std::string(300, 'v')}};
};

struct SearchMode {
  std::string name;
  std::uint64_t seed = 0;
  bool open = false;
  friend void PrintTo(const SearchMode& mode, std::ostream* out) { *out << mode.name; }
};

class SearchDifferentialTest : public testing::TestWithParam<SearchMode> {
 protected:
  static NodeRigOptions options() {
    NodeRigOptions options{
        .roles = {"index"},
        .flags = {{"relay.search", "on"}, {"relay.limit_default", std::to_string(kSearchLimit)}}};
    if (GetParam().open) options.flags.insert(options.flags.end(), kOpen.begin(), kOpen.end());
    return options;
  }
  static std::uint64_t seed() {
    const char* chosen = std::getenv("TODOKE_TEST_SEED");
    return chosen == nullptr ? GetParam().seed : std::stoull(chosen);
  }

  void compare(const SearchFilter& search, const std::vector<Post>& posts) {
    std::set<std::string> wanted;
    for (const auto& post : posts) {
      if (is_searched(post.event.kind) && passes(post.event, search.filter) &&
          has_words(post.content, search.text))
        wanted.insert(post.event.id);
    }
    const auto limit = search.filter.limit.value_or(kSearchLimit);
    const auto answer = client.stored(search.json());
    EXPECT_EQ(answer.closed, "") << search.json();
    const std::set<std::string> got(answer.ids.begin(), answer.ids.end());
    EXPECT_EQ(got.size(), answer.ids.size()) << "each comes once " << search.json();
    EXPECT_EQ(answer.has_more(), wanted.size() > limit) << search.json();
    EXPECT_EQ(got.size(), std::min(wanted.size(), limit)) << search.json();
    for (const auto& id : got) EXPECT_TRUE(wanted.contains(id)) << id << ' ' << search.json();
  }

  RelayRig rig{options()};
  NostrClient client{rig.url()};
};

INSTANTIATE_TEST_SUITE_P(, SearchDifferentialTest,
                         testing::Values(SearchMode{"Topics", 1, false}, SearchMode{"Open", 2, true}),
                         [](const auto& mode) { return mode.param.name; });

TEST_P(SearchDifferentialTest, IndexAndNaiveAgree) {
  SCOPED_TRACE(fmt::format("TODOKE_TEST_SEED={}", seed()));
  if (!GetParam().open) {
    enable_topic(rig, topic('1'));
    enable_topic(rig, topic('2'));
  }
  SearchDice dice(seed(), GetParam().open);
  std::vector<Post> posts;
  for (std::size_t i = 0; i < kPosts; ++i) {
    posts.push_back(dice.post());
    const auto ok = client.publish_json(posts.back().event.json);
    ASSERT_TRUE(ok.accepted) << ok.text << posts.back().event.json;
  }
  rig.await_index();
  for (std::size_t i = 0; i < kSearches; ++i) compare(dice.filter(posts), posts);
}

// The few that a filter wants stand behind thousands that have the word too.
class SearchManyTest : public testing::Test {
 protected:
  static constexpr int kMany = 2'300;

  void write_many() {
    rig.sql(fmt::format(R"(
      SELECT cn_relay.lock_log();
      INSERT INTO cn_relay.events (event_id, pubkey, kind, created_at, tags, content, sig, ingested_seq, source, topics)
      SELECT encode(sha256(i::text::bytea), 'hex'), repeat(CASE WHEN i % 500 = 7 THEN 'b' ELSE 'a' END, 64),
        CASE WHEN i % 500 = 8 THEN 1111 ELSE 1 END, {} - i,
        CASE WHEN i % 500 = 9 THEN '[["t","rare"],["r","rare"]]'::json ELSE '[["t","often"]]' END, 'common ' || i,
        repeat('0', 128), nextval('cn_relay.events_outbox_seq'), 'ws', '{{}}'
      FROM generate_series(1, {}) i;
      INSERT INTO cn_relay.events_outbox (seq, op, event_id, topic_id, kind, created_at, ingested_at)
      SELECT ingested_seq, 'upsert', event_id, '', kind, created_at, ingested_at FROM cn_relay.events
      ORDER BY ingested_seq)",
                        kTime, kMany));
    rig.await_index();
  }
  StoredAnswer find(const std::string& more) {
    return client.stored(fmt::format(R"({{"search":"common"{}}})", more));
  }

  RelayRig rig{NodeRigOptions{.roles = {"index"}, .flags = kOpen}};
  NostrClient client{rig.url()};
};

TEST_F(SearchManyTest, AFilterHoldsBeforeTheLimit) {
  write_many();
  const auto author = std::string(64, 'b');
  for (const auto& filter : {fmt::format(R"(,"authors":["{}"])", author), std::string(R"(,"kinds":[1111])"),
                             std::string(R"(,"#t":["rare"])"), std::string(R"(,"#r":["rare"])"),
                             fmt::format(R"(,"since":{},"until":{})", kTime - kMany, kTime - kMany + 4)}) {
    const auto answer = find(filter + R"(,"limit":5)");
    EXPECT_EQ(answer.ids.size(), 5U) << filter;
    EXPECT_FALSE(answer.has_more()) << filter;
    EXPECT_EQ(find(filter + R"(,"limit":4)").ids.size(), 4U) << filter;
    EXPECT_TRUE(find(filter + R"(,"limit":4)").has_more()) << filter;
  }
  const auto oldest = rig.value("SELECT event_id FROM cn_relay.events ORDER BY created_at LIMIT 1");
  EXPECT_THAT(find(fmt::format(R"(,"ids":["{}"],"limit":1)", oldest)).ids, ElementsAre(oldest));
}

TEST_F(SearchManyTest, ResultsGoOnPastAThousand) {
  write_many();
  const auto all = find(R"(,"limit":5000)");
  EXPECT_EQ(std::set<std::string>(all.ids.begin(), all.ids.end()).size(), static_cast<std::size_t>(kMany));
  EXPECT_FALSE(all.has_more());
  const auto some = find(R"(,"limit":1500)");
  EXPECT_EQ(some.ids.size(), 1'500U);
  EXPECT_TRUE(some.has_more());
}

}  // namespace
}  // namespace todoke::test

#include "nostr/filter.hpp"

#include <limits>
#include <random>

#include <fmt/format.h>

#include "nostr/filter_writer.hpp"
#include "nostr/test_support.hpp"

namespace todoke::nostr {
namespace {

using test::kHexA;
using test::kHexB;

Filter filter_of(std::string_view text) {
  auto filter = parse_filter(text, {});
  if (!filter) throw std::runtime_error(fmt::format("{}: {}", text, text_of(filter.error())));
  return std::move(*filter);
}

std::string_view filter_refusal(std::string_view text, const FilterLimits& limits = {}) {
  const auto filter = parse_filter(text, limits);
  return filter ? "" : text_of(filter.error());
}

TEST(FilterParse, ReadsEveryKey) {
  const auto filter = filter_of(fmt::format(
      R"({{"ids":["{0}"],"authors":["{1}","{0}","{1}"],"kinds":[7,1,1],"since":-5,"until":9,"limit":0,)"
      R"("#t":["b","a"],"#E":["any"],"#e":["{0}"],"seq_after":12,"search":"q\u0000"}})",
      kHexA, kHexB));
  EXPECT_EQ(filter.ids->values(), std::vector{*EventId::from_hex(kHexA)});
  EXPECT_EQ(filter.authors->values(), (std::vector{*Pubkey::from_hex(kHexA), *Pubkey::from_hex(kHexB)}));
  EXPECT_EQ(filter.kinds->values(), (std::vector<Kind>{1, 7}));
  EXPECT_EQ(filter.since, -5);
  EXPECT_EQ(filter.until, 9);
  EXPECT_EQ(filter.limit, 0U);
  EXPECT_EQ(filter.seq_after, Seq{12});
  EXPECT_EQ(filter.search, std::string("q\0", 2));
  ASSERT_EQ(filter.tags.size(), 3U);
  EXPECT_EQ(filter.tag('t')->values(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(filter.tag('E')->values(), std::vector<std::string>{"any"});
  EXPECT_EQ(filter.tag('x'), nullptr);
  EXPECT_EQ(filter_of("{}"), Filter{});
  EXPECT_EQ(filter_of(R"({"limit":99999999999})").limit, std::numeric_limits<std::uint32_t>::max());
}

TEST(FilterParse, RefusesWhatIsWrong) {
  const auto ids = "invalid: ids must be 64 lower-case hex digits each";
  const auto kinds = "invalid: kinds must be integers from 0 to 65535";
  const auto unknown = "unsupported: unknown filter key";
  const std::vector<std::pair<std::string, std::string_view>> cases = {
      {R"({"ids":["abc"]})", ids},
      {R"({"ids":[")" + std::string(64, 'A') + R"("]})", ids},
      {R"({"ids":")" + kHexA + R"("})", ids},
      {R"({"ids":null})", ids},
      {R"({"ids":[1]})", ids},
      {R"({"authors":["abcd"]})", "invalid: authors must be 64 lower-case hex digits each"},
      {R"({"kinds":[1.0]})", kinds},
      {R"({"kinds":["1"]})", kinds},
      {R"({"kinds":[-1]})", kinds},
      {R"({"kinds":[65536]})", kinds},
      {R"({"kinds":1})", kinds},
      {R"({"since":1.5})", "invalid: since must be an integer"},
      {R"({"since":"1"})", "invalid: since must be an integer"},
      {R"({"until":null})", "invalid: until must be an integer"},
      {R"({"limit":-1})", "invalid: limit must be a non-negative integer"},
      {R"({"limit":1e3})", "invalid: limit must be a non-negative integer"},
      {R"({"seq_after":-1})", "invalid: seq_after must be a non-negative integer"},
      {R"({"search":7})", "invalid: search must be a string"},
      {R"({"#t":"x"})", "invalid: tag filters must be arrays of strings"},
      {R"({"#t":[1]})", "invalid: tag filters must be arrays of strings"},
      {R"({"#t":["\ud800"]})", "invalid: tag filters must be arrays of strings"},
      {R"({"#e":["x"]})", "invalid: #e must be 64 lower-case hex digits each"},
      {R"({"#p":["x"]})", "invalid: #p must be 64 lower-case hex digits each"},
      {R"({"foo":1})", unknown},
      {R"({"#tt":["x"]})", unknown},
      {R"({"#":["x"]})", unknown},
      {R"({"#1":["x"]})", unknown},
      {R"({"&t":["x"]})", unknown},
      {R"({"IDS":[]})", unknown},
      {R"({"":[]})", unknown},
      {R"({"kinds":[1],"kinds":[2]})", "invalid: duplicate filter key"},
      {R"({"#t":["a"],"#\u0074":["b"]})", "invalid: duplicate filter key"},
      {R"({"since":1,"since":1})", "invalid: duplicate filter key"},
      {R"([])", "invalid: filter must be an object"},
      {R"({"kinds":[1,]})", "invalid: message is not JSON"},
      {R"({"kinds":[1]}})", "invalid: message is not JSON"},
      {R"({"foo":tru})", "invalid: message is not JSON"},
      {R"({"foo":)" + std::string(50, '[') + std::string(50, ']') + "}", "invalid: message too deep"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(filter_refusal(text), expected) << text;
}

TEST(FilterParse, HoldsTheLimits) {
  FilterLimits limits;
  limits.values_max = 2;
  limits.tags_max = 1;
  EXPECT_EQ(filter_refusal(R"({"kinds":[1,2],"#t":["a","b"]})", limits), "");
  EXPECT_EQ(filter_refusal(R"({"kinds":[1,2,3]})", limits), "invalid: too many values in a filter");
  EXPECT_EQ(filter_refusal(R"({"#t":["a","b","c"]})", limits), "invalid: too many values in a filter");
  EXPECT_EQ(filter_refusal(R"({"#t":["a"],"#r":["b"]})", limits), "invalid: too many tag filters");
}

TEST(Matching, EmptyListsMatchNothingAndNoConditionsMatchEverything) {
  const auto event = test::event_with(1, {{"t", "x"}});
  EXPECT_TRUE(matches(filter_of("{}"), event));
  for (const auto* text : {R"({"ids":[]})", R"({"authors":[]})", R"({"kinds":[]})", R"({"#t":[]})"}) {
    EXPECT_FALSE(matches(filter_of(text), event)) << text;
  }
  EXPECT_FALSE(matches_any({}, event));
}

TEST(Matching, SinceAndUntilAreInclusive) {
  const auto event = test::event_with(1, {}, "", 100);
  EXPECT_TRUE(matches(filter_of(R"({"since":100,"until":100})"), event));
  EXPECT_FALSE(matches(filter_of(R"({"since":101})"), event));
  EXPECT_FALSE(matches(filter_of(R"({"until":99})"), event));
  EXPECT_FALSE(matches(filter_of(R"({"since":101,"until":99})"), event));
}

TEST(Matching, TagsMatchByTheirFirstValueAndLetterExactly) {
  const auto event = test::event_with(1, {{"t", "a", "b"}, {"T", "c"}, {"r"}, {"tt", "d"}, {"t", ""}});
  for (const auto& [text, expected] :
       std::vector<std::pair<std::string, bool>>{{R"({"#t":["a"]})", true},
                                                 {R"({"#t":["b"]})", false},
                                                 {R"({"#t":["c"]})", false},
                                                 {R"({"#T":["c"]})", true},
                                                 {R"({"#t":["d"]})", false},
                                                 {R"({"#t":["x","","y"]})", true},
                                                 {R"({"#r":[""]})", false},
                                                 {R"({"#t":["a"],"#T":["c"]})", true},
                                                 {R"({"#t":["a"],"#T":["a"]})", false}}) {
    EXPECT_EQ(matches(filter_of(text), event), expected) << text;
  }
}

TEST(Matching, HowStoredEventsAreSearchedDoesNotCount) {
  const auto event = test::event_with(1, {});
  EXPECT_TRUE(matches(filter_of(R"({"limit":0,"seq_after":99,"search":"nothing"})"), event));
}

// As NIP-01 says it, without any haste.
bool naive(const Filter& filter, const Event& event) {
  const auto among = [](const auto& list, const auto& value) {
    if (!list) return true;
    for (const auto& one : list->values()) {
      if (one == value) return true;
    }
    return false;
  };
  bool good = among(filter.ids, event.id()) && among(filter.authors, event.pubkey()) &&
              among(filter.kinds, event.kind());
  if (filter.since) good = good && *filter.since <= event.created_at();
  if (filter.until) good = good && event.created_at() <= *filter.until;
  for (const auto& wanted : filter.tags) {
    bool found = false;
    for (const auto& tag : test::tags_of(event)) {
      for (const auto& value : wanted.values.values()) {
        found = found || (tag.size() >= 2 && tag[0] == std::string(1, wanted.letter) && tag[1] == value);
      }
    }
    good = good && found;
  }
  return good;
}

TEST(Matching, AgreesWithANaiveMatcherOnRandomEventsAndFilters) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const std::vector<SecretKey> keys = {test::alice(), SecretKey::generate(), SecretKey::generate()};
  const std::vector<std::string> letters = {"t", "e", "T", "r", "d", "tt", ""};
  const std::vector<std::string> values = {"a", "b", "c", "", kHexA};

  std::vector<Event> events;
  for (int i = 0; i < 60; ++i) {
    EventDraft draft{static_cast<std::int64_t>(below(6)), static_cast<Kind>(below(4)), {}, ""};
    draft.tags.resize(below(4));
    for (auto& tag : draft.tags) {
      if (below(8) != 0) tag.push_back(letters[below(letters.size())]);
      for (auto n = below(3); !tag.empty() && n > 0; --n) tag.push_back(values[below(values.size())]);
    }
    events.push_back(sign_event(draft, keys[below(keys.size())]));
  }
  std::size_t hits = 0;
  for (int round = 0; round < 3'000; ++round) {
    Filter filter;
    if (below(4) == 0) {
      std::vector<EventId> ids;
      for (auto n = below(30); n > 0; --n) ids.push_back(events[below(events.size())].id());
      filter.ids.emplace(ids);
    }
    if (below(4) == 0) {
      std::vector<Pubkey> authors;
      for (auto n = below(3); n > 0; --n) authors.push_back(keys[below(keys.size())].pubkey());
      filter.authors.emplace(authors);
    }
    if (below(3) == 0) {
      std::vector<Kind> kinds;
      for (auto n = below(4); n > 0; --n) kinds.push_back(static_cast<Kind>(below(4)));
      filter.kinds.emplace(kinds);
    }
    if (below(3) == 0) filter.since = static_cast<std::int64_t>(below(6));
    if (below(3) == 0) filter.until = static_cast<std::int64_t>(below(6));
    for (const char letter : {'t', 'e', 'T'}) {
      if (below(4) != 0) continue;
      std::vector<std::string> wanted;
      for (auto n = below(4); n > 0; --n) wanted.push_back(values[below(values.size())]);
      filter.tags.push_back({letter, SortedSet(wanted)});
    }
    for (const auto& event : events) {
      ASSERT_EQ(matches(filter, event), naive(filter, event)) << event.json();
      hits += naive(filter, event) ? 1U : 0U;
    }
  }
  EXPECT_GT(hits, 1'000U) << "the filters are not all empty";
}

TEST(FilterWriterTest, WhatIsWrittenIsReadAgain) {
  const auto hex = std::string(64, 'a');
  const std::vector<std::string> texts = {"{}",
                                          R"({"ids":[],"kinds":[0,65535],"since":-1,"until":5,"limit":0})",
                                          R"({"authors":[")" + hex + R"("],"#e":[")" + hex +
                                              R"("],"#t":["a\"b\\","é"],"seq_after":7,"search":"x y"})"};
  for (const auto& text : texts) {
    const auto filter = parse_filter(text, {});
    ASSERT_TRUE(filter) << text;
    EXPECT_EQ(parse_filter(filter_json(*filter), {}).value(), *filter) << filter_json(*filter);
  }
}

}  // namespace
}  // namespace todoke::nostr

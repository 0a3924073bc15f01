// What a REQ or COUNT finds among what is stored, and in which order. Every test runs against each way in
// which the relay answers: from the tables, from memory, from memory that holds a part only, and as a plain
// relay from both.
#include <algorithm>

#include <fmt/format.h>

#include "support.hpp"

namespace todoke::test {
namespace {

constexpr nostr::Kind kFilteredKinds[] = {1, 2, 7};

struct FilterMode {
  std::string name;
  Flags flags;
  bool from_memory = false;

  friend void PrintTo(const FilterMode& mode, std::ostream* out) { *out << mode.name; }
};

std::vector<Event> newest_first(std::vector<Event> events) {
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    if (a.created_at() != b.created_at()) return a.created_at() > b.created_at();
    return a.id() < b.id();
  });
  return events;
}

class FiltersTest : public testing::TestWithParam<FilterMode> {
 protected:
  void SetUp() override {
    if (!GetParam().from_memory) return;
    const auto from_memory = await([&] {
      client.stored(global_and(R"("limit":1)"));
      return rig.metric("todoke_query_memory_total") > 0;
    });
    ASSERT_TRUE(from_memory);
  }

  void store(const Event& event) { store_at(client, event); }
  // Sends all of them at once and waits for their OKs.
  void store_all(const std::vector<Event>& events) {
    for (const auto& event : events) client.send(fmt::format(R"(["EVENT",{}])", event.json()));
    for (std::size_t i = 0; i < events.size(); ++i) {
      const auto ok = parse_ok(client.receive(R"(["OK",)"));
      EXPECT_TRUE(ok.accepted) << ok.text;
    }
  }
  Ids found(std::string_view more) { return client.stored(global_and(more)).ids; }
  std::string count(const std::string& filters) {
    const auto answer = client.count("c", filters);
    static constexpr std::string_view kStart = R"(["COUNT","c",{"count":)";
    EXPECT_THAT(answer, StartsWith(kStart));
    return answer.substr(kStart.size(), answer.size() - kStart.size() - 2);
  }

  RelayRig rig{GetParam().flags};
  NostrClient client{rig.url()};
  SecretKey alice = SecretKey::generate();
  SecretKey bob = SecretKey::generate();
};

INSTANTIATE_TEST_SUITE_P(, FiltersTest,
                         testing::Values(FilterMode{"Tables", {{"relay.cache_bytes", "0"}}},
                                         FilterMode{"Memory", {}, true},
                                         FilterMode{"SmallMemory", {{"relay.cache_events", "10"}}, true},
                                         FilterMode{"OpenTables", kOpenTables},
                                         FilterMode{"OpenMemory", kOpen, true}),
                         [](const auto& mode) { return mode.param.name; });

TEST_P(FiltersTest, NewestComesFirstAndOfTheSameSecondTheSmallestId) {
  std::vector<Event> events;
  for (int i = 0; i < 24; ++i) events.push_back(global_note(alice, std::to_string(i), {}, 1, kTime + i % 3));
  store_all(events);
  const auto ids = hexes_of(newest_first(events));
  EXPECT_EQ(client.stored(kGlobal).ids, ids);
  // Also where a limit cuts inside a second.
  for (const std::size_t limit : {1U, 3U, 8U, 9U, 15U, 23U}) {
    EXPECT_EQ(found(fmt::format(R"("limit":{})", limit)),
              Ids(ids.begin(), ids.begin() + static_cast<int>(limit)));
  }
}

TEST_P(FiltersTest, EoseTellsWhetherThereIsMoreAndWhereTheLogStands) {
  std::vector<Event> events;
  for (int i = 0; i < 5; ++i) events.push_back(global_note(alice, std::to_string(i), {}, 1, kTime + i));
  store_all(events);
  const auto seq = rig.value("SELECT max(seq) FROM cn_relay.events_outbox");
  const auto eose = [&](const std::string& filter) { return client.request("s", filter).end; };
  EXPECT_EQ(eose(kGlobal), fmt::format(R"(["EOSE","s",["finish","seq:{}"]])", seq));
  EXPECT_EQ(eose(global_and(R"("limit":5)")), fmt::format(R"(["EOSE","s",["finish","seq:{}"]])", seq));
  EXPECT_EQ(eose(global_and(R"("limit":4)")), fmt::format(R"(["EOSE","s",["more","seq:{}"]])", seq));
  // Nobody has looked whether there are any.
  EXPECT_EQ(eose(global_and(R"("limit":0)")), fmt::format(R"(["EOSE","s",["more","seq:{}"]])", seq));
  EXPECT_EQ(eose(global_and(R"("limit":0,"kinds":[7])")),
            fmt::format(R"(["EOSE","s",["more","seq:{}"]])", seq));
  EXPECT_EQ(eose(global_and(R"("limit":0,"seq_after":1)")), R"(["EOSE","s",["more","seq:1"]])");
}

TEST_P(FiltersTest, LimitZeroGivesNothingStoredButWhatComes) {
  store(global_note(alice, "stored"));
  EXPECT_THAT(client.request("s", global_and(R"("limit":0)")).ids, IsEmpty());
  const auto event = global_note(alice, "comes");
  store(event);
  EXPECT_EQ(client.live("s"), event.json());
}

TEST_P(FiltersTest, SinceAndUntilAreInclusive) {
  std::vector<Event> events;
  for (int i = 0; i < 5; ++i) events.push_back(global_note(alice, "", {}, 1, kTime - i));
  store_all(events);
  const auto ids = hexes_of(events);
  EXPECT_EQ(found(fmt::format(R"("since":{})", kTime - 2)), Ids({ids[0], ids[1], ids[2]}));
  EXPECT_EQ(found(fmt::format(R"("until":{})", kTime - 2)), Ids({ids[2], ids[3], ids[4]}));
  EXPECT_EQ(found(fmt::format(R"("since":{},"until":{})", kTime - 3, kTime - 1)),
            Ids({ids[1], ids[2], ids[3]}));
  EXPECT_EQ(found(fmt::format(R"("since":{0},"until":{0})", kTime)), Ids({ids[0]}));
  EXPECT_EQ(found(R"("since":-9223372036854775808,"until":9223372036854775807)"), ids);
  const auto none =
      client.request("s", global_and(fmt::format(R"("since":{},"until":{})", kTime, kTime - 1)));
  EXPECT_THAT(none.ids, IsEmpty());
  EXPECT_THAT(none.end, StartsWith(R"(["EOSE","s",["finish",)"));
}

TEST_P(FiltersTest, EmptyListMatchesNothing) {
  store(global_note(alice, "", {{"p", hex_of(bob)}}));
  for (const auto* list : {R"("ids":[])", R"("authors":[])", R"("kinds":[])", R"("#p":[])", R"("#x":[])"}) {
    const auto answer = client.request("empty", global_and(list));
    EXPECT_THAT(answer.ids, IsEmpty()) << list;
    EXPECT_THAT(answer.end, StartsWith(R"(["EOSE","empty",["finish",)"));
    EXPECT_EQ(count(global_and(list)), "0");
    // Nor anything that comes.
    client.request("all", kGlobal);
    const auto event = global_note(alice, list);
    store(event);
    EXPECT_EQ(client.receive(), fmt::format(R"(["EVENT","all",{}])", event.json()));
  }
  EXPECT_THAT(client.stored(R"({"#t":[]})").ids, IsEmpty());
}

TEST_P(FiltersTest, EveryConditionOfAFilterMustHold) {
  const auto a1 = global_note(alice, "", {}, 1, kTime);
  const auto a2 = global_note(alice, "", {}, 7, kTime - 1);
  const auto b1 = global_note(bob, "", {}, 1, kTime - 2);
  const auto b2 = global_note(bob, "", {}, 7, kTime - 3);
  store_all({a1, a2, b1, b2});
  const auto by_alice = fmt::format(R"("authors":["{}"])", hex_of(alice));
  EXPECT_EQ(found(by_alice), hexes_of({a1, a2}));
  EXPECT_EQ(found(R"("kinds":[7])"), hexes_of({a2, b2}));
  EXPECT_EQ(found(by_alice + R"(,"kinds":[7])"), hexes_of({a2}));
  EXPECT_EQ(found(fmt::format(R"("authors":["{}","{}"],"kinds":[1,7,1])", hex_of(alice), hex_of(bob))),
            hexes_of({a1, a2, b1, b2}));
  EXPECT_EQ(found(fmt::format(R"("ids":["{}","{}"],{})", hex_of(a1), hex_of(b1), by_alice)), hexes_of({a1}));
  EXPECT_EQ(found(fmt::format(R"("ids":["{}","{}"],"limit":1)", hex_of(b2), hex_of(b1))), hexes_of({b1}));
  EXPECT_EQ(found(fmt::format(R"("ids":["{}"])", std::string(64, '0'))), Ids());
}

TEST_P(FiltersTest, TagFiltersAskForTheFirstValue) {
  const auto id = std::string(64, 'a');
  const auto one = global_note(alice, "", {{"e", id}, {"x", "1"}}, 1, kTime);
  const auto two = global_note(alice, "", {{"x", "2", "1"}, {"X", "1"}}, 1, kTime - 1);
  const auto both = global_note(alice, "", {{"x", "1"}, {"x", "2"}, {"x", "1"}}, 1, kTime - 2);
  const auto none = global_note(alice, "", {{"x"}, {"xx", "1"}, {"", "1"}, {"é", "1"}}, 1, kTime - 3);
  const auto empty = global_note(alice, "", {{"x", ""}}, 1, kTime - 4);
  store_all({one, two, both, none, empty});
  EXPECT_EQ(found(R"("#x":["1"])"), hexes_of({one, both}));
  EXPECT_EQ(found(R"("#x":["2"])"), hexes_of({two, both}));
  EXPECT_EQ(found(R"("#x":["1","2"])"), hexes_of({one, two, both}));
  EXPECT_EQ(found(R"("#X":["1"])"), hexes_of({two}));
  EXPECT_EQ(found(R"("#x":[""])"), hexes_of({empty}));
  EXPECT_EQ(found(R"("#x":["1"],"#X":["1"])"), Ids());
  EXPECT_EQ(found(fmt::format(R"("#x":["1"],"#e":["{}"])", id)), hexes_of({one}));
  EXPECT_EQ(found(R"("#x":["2"],"#X":["1"],"kinds":[1])"), hexes_of({two}));
  EXPECT_EQ(count(global_and(R"("#x":["1","2"])")), "3");
}

TEST_P(FiltersTest, LongTagValuesAreCompared) {
  const auto value = std::string(300, 'v');
  const auto longer = value + "w";
  // Reads like the key under which the long one is found.
  const auto hash = rig.value(fmt::format("SELECT cn_relay.tag_value_key('{}')", value));
  ASSERT_THAT(hash, StartsWith("sha256:"));
  const auto one = global_note(alice, "", {{"r", value}}, 1, kTime);
  const auto two = global_note(alice, "", {{"r", longer}}, 1, kTime - 1);
  const auto three = global_note(alice, "", {{"r", hash}}, 1, kTime - 2);
  store_all({one, two, three});
  EXPECT_EQ(found(fmt::format(R"("#r":["{}"])", value)), hexes_of({one}));
  EXPECT_EQ(found(fmt::format(R"("#r":["{}"])", longer)), hexes_of({two}));
  EXPECT_EQ(found(fmt::format(R"("#r":["{}"])", hash)), hexes_of({three}));
  EXPECT_EQ(found(fmt::format(R"("#r":["{}","{}"])", hash, value)), hexes_of({one, three}));
  EXPECT_EQ(count(global_and(fmt::format(R"("#r":["{}"])", hash))), "1");
}

TEST_P(FiltersTest, SeveralFiltersAreMergedAndGiveEachEventOnce) {
  std::vector<Event> events;
  for (int i = 0; i < 12; ++i) {
    events.push_back(
        global_note(i % 2 == 0 ? alice : bob, std::to_string(i), {}, kFilteredKinds[i % 3], kTime - i));
  }
  store_all(events);
  const auto ids = hexes_of(events);
  const auto of_alice = global_and(fmt::format(R"("authors":["{}"])", hex_of(alice)));
  const auto of_kind_1 = global_and(R"("kinds":[1])");
  Ids wanted;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i % 2 == 0 || i % 3 == 0) wanted.push_back(ids[i]);
  }
  EXPECT_EQ(client.stored(of_alice + "," + of_kind_1).ids, wanted);
  EXPECT_EQ(client.stored(of_kind_1 + "," + of_alice + "," + of_kind_1).ids, wanted);
  EXPECT_EQ(count(of_alice + "," + of_kind_1), std::to_string(wanted.size()));
  EXPECT_EQ(count(of_kind_1 + "," + of_kind_1), "4");
  // Each has a limit of its own.
  const auto two_of_alice = global_and(fmt::format(R"("authors":["{}"],"limit":2)", hex_of(alice)));
  const auto three_of_kind_1 = global_and(R"("kinds":[1],"limit":3)");
  EXPECT_EQ(client.stored(two_of_alice + "," + three_of_kind_1).ids, Ids({ids[0], ids[2], ids[3], ids[6]}));
}

TEST_P(FiltersTest, CountIsExactAndKnowsNoLimit) {
  std::vector<Event> events;
  for (int i = 0; i < 40; ++i) {
    events.push_back(global_note(alice, std::to_string(i), {{"x", std::to_string(i % 4)}}, 1, kTime + i));
  }
  store_all(events);
  EXPECT_EQ(count(kGlobal), "40");
  EXPECT_EQ(count(global_and(R"("limit":3)")), "40");
  EXPECT_EQ(count(global_and(R"("#x":["0","3"])")), "20");
  EXPECT_EQ(count(global_and(fmt::format(R"("since":{},"until":{})", kTime + 10, kTime + 19))), "10");
  EXPECT_EQ(count(global_and(R"("kinds":[2])")), "0");
  EXPECT_EQ(count(by_id(events[3]) + "," + by_id(events[4]) + "," + global_and(R"("#x":["3"])")), "11");
}

TEST_P(FiltersTest, SeqAfterPagesThroughEverythingOnceInTheOrderOfTheLog) {
  std::vector<Event> events;
  // Of falling and equal times: the order of the log is another one.
  for (int i = 0; i < 26; ++i) events.push_back(global_note(alice, std::to_string(i), {}, 1, kTime - i / 2));
  store_all(events);
  const auto order = rig.sql("SELECT event_id FROM cn_relay.events ORDER BY ingested_seq");
  Ids got;
  std::int64_t cursor = 0;
  bool more = true;
  for (int page = 0; more; ++page) {
    ASSERT_LT(page, 10);
    const auto answer = client.stored(global_and(fmt::format(R"("seq_after":{},"limit":7)", cursor)));
    got.insert(got.end(), answer.ids.begin(), answer.ids.end());
    EXPECT_LE(answer.ids.size(), 7U);
    EXPECT_GE(answer.cursor(), cursor);
    cursor = answer.cursor();
    more = answer.has_more();
  }
  EXPECT_EQ(got, order);
  EXPECT_EQ(std::to_string(cursor), rig.value("SELECT max(seq) FROM cn_relay.events_outbox"));
  const auto rest = client.stored(global_and(fmt::format(R"("seq_after":{},"limit":7)", cursor)));
  EXPECT_THAT(rest.ids, IsEmpty());
  EXPECT_FALSE(rest.has_more());
}

TEST_P(FiltersTest, SeqAfterTakesConditionsAndSeveralFilters) {
  std::vector<Event> events;
  for (int i = 0; i < 24; ++i) {
    events.push_back(global_note(i % 2 == 0 ? alice : bob, std::to_string(i), {{"x", std::to_string(i % 4)}},
                                 kFilteredKinds[i % 3], kTime - i));
    store(events.back());
  }
  const auto ids = hexes_of(events);
  const auto page_all = [&](const std::vector<std::string>& conditions, int limit) {
    Ids got;
    std::int64_t cursor = 0;
    for (bool more = true; more;) {
      std::string filters;
      for (const auto& condition : conditions) {
        if (!filters.empty()) filters += ',';
        filters += global_and(fmt::format(R"({},"seq_after":{},"limit":{})", condition, cursor, limit));
      }
      const auto answer = client.stored(filters);
      EXPECT_EQ(answer.closed, "");
      if (answer.has_more() && answer.cursor() <= cursor) ADD_FAILURE() << "the cursor stands still";
      if (HasFailure()) return got;
      got.insert(got.end(), answer.ids.begin(), answer.ids.end());
      cursor = answer.cursor();
      more = answer.has_more();
    }
    return got;
  };
  const auto wanted = [&](auto condition) {
    Ids list;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (condition(i)) list.push_back(ids[i]);
    }
    return list;
  };
  EXPECT_EQ(page_all({R"("kinds":[2])"}, 3), wanted([](auto i) { return i % 3 == 1; }));
  EXPECT_EQ(page_all({R"("#x":["1"])"}, 3), wanted([](auto i) { return i % 4 == 1; }));
  EXPECT_EQ(page_all({fmt::format(R"("since":{})", kTime - 9)}, 4), wanted([](auto i) { return i <= 9; }));
  const auto of_alice = fmt::format(R"("authors":["{}"])", hex_of(alice));
  EXPECT_EQ(page_all({of_alice, R"("kinds":[7])"}, 2),
            wanted([](auto i) { return i % 2 == 0 || i % 3 == 2; }));
  EXPECT_EQ(page_all({fmt::format(R"("ids":["{}","{}"])", ids[9], ids[4])}, 1), Ids({ids[4], ids[9]}));
}

TEST_P(FiltersTest, SeqAfterGoesOnLive) {
  store(global_note(alice, "before"));
  const auto cursor = client.stored(kGlobal).cursor();
  const auto after = global_note(alice, "after");
  store(after);
  EXPECT_THAT(client.request("s", global_and(fmt::format(R"("seq_after":{})", cursor))).ids,
              ElementsAre(hex_of(after)));
  const auto live = global_note(alice, "live");
  store(live);
  EXPECT_EQ(client.live("s"), live.json());
}

TEST_P(FiltersTest, StoredEventIsServedByteForByte) {
  const std::string nul("nul \0 inside", 12);
  const std::vector<Event> events = {
      global_note(alice, nul, {}, 1, kTime),
      global_note(alice, "", {{"x", nul, nul}, {nul, "y"}}, 1, kTime - 1),
      global_note(alice, "\\u0000 is no NUL", {{"x", "\\u0000"}}, 1, kTime - 2),
      global_note(alice, "\x01\x1f \x7f / \u2028 \ufdd0 \U0001f600 \"\\\b\f\n\r\t", {{}, {""}, {"a", "", ""}},
                  1, kTime - 3),
      global_note(alice, "", {{"t", "Hashtag"}, {"t", "kukuri:global"}}, 1, kTime - 4),
  };
  store_all(events);
  rig.stop();
  rig.start();
  NostrClient later(rig.url());
  const auto answer = later.stored(kGlobal);
  ASSERT_EQ(answer.events.size(), events.size());
  for (std::size_t i = 0; i < events.size(); ++i) EXPECT_EQ(answer.events[i], events[i].json());
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.events WHERE raw IS NOT NULL"), "2");
}

TEST_P(FiltersTest, AnswerThatWouldBeTooLongIsCut) {
  std::vector<Event> events;
  for (int i = 0; i < 40; ++i) {
    events.push_back(
        global_note(alice, std::string(60'000, static_cast<char>('a' + i % 26)), {}, 1, kTime - i));
  }
  store_all(events);
  const auto answer = client.stored(kGlobal);
  EXPECT_TRUE(answer.has_more());
  ASSERT_GT(answer.ids.size(), 20U);
  ASSERT_LT(answer.ids.size(), 40U);
  auto ids = hexes_of(events);
  ids.resize(answer.ids.size());
  EXPECT_EQ(answer.ids, ids);
  // It goes on from there.
  const auto rest = client.stored(
      global_and(fmt::format(R"("until":{})", kTime - static_cast<std::int64_t>(answer.ids.size()))));
  EXPECT_EQ(answer.ids.size() + rest.ids.size(), 40U);
  EXPECT_FALSE(rest.has_more());
  // The bytes are those of all filters together, and of ids too.
  std::string list;
  for (const auto& event : events) list += (list.empty() ? "\"" : ",\"") + hex_of(event) + "\"";
  const auto by_ids = client.stored(global_and(fmt::format(R"("ids":[{}])", list)));
  EXPECT_EQ(by_ids.ids, ids);
  EXPECT_TRUE(by_ids.has_more());
  const auto merged = client.stored(global_and(fmt::format(R"("until":{})", kTime - 5)) + "," +
                                    global_and(fmt::format(R"("since":{})", kTime - 9)));
  EXPECT_EQ(merged.ids, ids);
  EXPECT_TRUE(merged.has_more());
}

class FilterTextsTest : public TopicsTest {
 protected:
  std::string closed(const std::string& filters) { return client.stored(filters).closed; }
};

TEST_F(FilterTextsTest, EveryRefusedFilterHasItsText) {
  const auto upper = std::string(64, 'A');
  const std::pair<std::string, std::string> cases[] = {
      {R"("foo":1)", "unsupported: unknown filter key"},
      {R"("#tt":["a"])", "unsupported: unknown filter key"},
      {R"("#1":["a"])", "unsupported: unknown filter key"},
      {R"("#":["a"])", "unsupported: unknown filter key"},
      {R"("&t":["a"])", "unsupported: unknown filter key"},
      {R"("search":"word")", "unsupported: search"},
      {R"("search":1)", "invalid: search must be a string"},
      {R"("ids":["abc"])", "invalid: ids must be 64 lower-case hex digits each"},
      {fmt::format(R"("ids":["{}"])", upper), "invalid: ids must be 64 lower-case hex digits each"},
      {R"("ids":"abc")", "invalid: ids must be 64 lower-case hex digits each"},
      {R"("authors":["abc"])", "invalid: authors must be 64 lower-case hex digits each"},
      {R"("authors":[5])", "invalid: authors must be 64 lower-case hex digits each"},
      {R"("kinds":[65536])", "invalid: kinds must be integers from 0 to 65535"},
      {R"("kinds":[-1])", "invalid: kinds must be integers from 0 to 65535"},
      {R"("kinds":[1.0])", "invalid: kinds must be integers from 0 to 65535"},
      {R"("kinds":1)", "invalid: kinds must be integers from 0 to 65535"},
      {R"("#x":"a")", "invalid: tag filters must be arrays of strings"},
      {R"("#x":[1])", "invalid: tag filters must be arrays of strings"},
      {R"("#e":["abc"])", "invalid: #e must be 64 lower-case hex digits each"},
      {fmt::format(R"("#p":["{}"])", upper), "invalid: #p must be 64 lower-case hex digits each"},
      {R"("since":"1")", "invalid: since must be an integer"},
      {R"("since":1.5)", "invalid: since must be an integer"},
      {R"("until":null)", "invalid: until must be an integer"},
      {R"("limit":-1)", "invalid: limit must be a non-negative integer"},
      {R"("limit":"10")", "invalid: limit must be a non-negative integer"},
      {R"("seq_after":-1)", "invalid: seq_after must be a non-negative integer"},
      {R"("kinds":[1],"kinds":[2])", "invalid: duplicate filter key"},
      {R"("#t":["kukuri:global"])", "invalid: duplicate filter key"},
      {R"("#a":[],"#b":[],"#c":[],"#d":[],"#e":[],"#f":[],"#g":[],"#h":[])", "invalid: too many tag filters"},
  };
  for (const auto& [condition, text] : cases) EXPECT_EQ(closed(global_and(condition)), text) << condition;
  std::string many = R"("kinds":[)";
  for (int i = 0; i < 2'001; ++i) many += (i == 0 ? "" : ",") + std::to_string(i);
  EXPECT_EQ(closed(global_and(many + "]")), "invalid: too many values in a filter");
  EXPECT_EQ(closed(global_and(R"("seq_after":1)") + "," + global_and(R"("seq_after":2)")),
            "invalid: seq_after must be the same in all filters");
  EXPECT_EQ(closed(global_and(R"("seq_after":1)") + "," + kGlobal),
            "invalid: seq_after must be the same in all filters");
  EXPECT_EQ(closed("5"), "invalid: filter must be an object");
  EXPECT_EQ(closed("[]"), "invalid: filter must be an object");
  client.send(R"(["REQ","none"])");
  EXPECT_EQ(client.receive(), R"(["CLOSED","none","invalid: no filters"])");
  std::string filters = kGlobal;
  for (int i = 1; i < 20; ++i) filters += std::string(",") + kGlobal;
  EXPECT_EQ(closed(filters), "");
  EXPECT_EQ(closed(filters + "," + kGlobal), "invalid: too many filters");
}

TEST_F(FilterTextsTest, RefusedCountIsClosedToo) {
  EXPECT_EQ(client.count("c", R"({"kinds":[1]})"), R"(["CLOSED","c","invalid: #t required"])");
  EXPECT_EQ(client.count("c", global_and(R"("search":"x")")), R"(["CLOSED","c","unsupported: search"])");
  EXPECT_EQ(client.count("c", global_and(R"("foo":1)")),
            R"(["CLOSED","c","unsupported: unknown filter key"])");
  client.send(R"(["COUNT","c"])");
  EXPECT_EQ(client.receive(), R"(["CLOSED","c","invalid: no filters"])");
}

TEST_F(FilterTextsTest, LimitsAreClampedSilently) {
  const RelayRig small(Flags{{"relay.limit_default", "3"}, {"relay.limit_max", "5"}});
  NostrClient there(small.url());
  for (int i = 0; i < 8; ++i) store_at(there, global_note(alice, std::to_string(i)));
  for (int round = 0; round < 2; ++round) {  // from the tables, then from memory
    EXPECT_EQ(there.stored(kGlobal).ids.size(), 3U);
    EXPECT_TRUE(there.stored(kGlobal).has_more());
    EXPECT_EQ(there.stored(global_and(R"("limit":4)")).ids.size(), 4U);
    EXPECT_EQ(there.stored(global_and(R"("limit":6)")).ids.size(), 5U);
    EXPECT_EQ(there.stored(global_and(R"("limit":9223372036854775807)")).ids.size(), 5U);
    EXPECT_EQ(there.stored(global_and(R"("seq_after":0,"limit":100)")).ids.size(), 5U);
  }
}

TEST_F(FilterTextsTest, QueryThatTakesTooLongIsClosed) {
  RelayRig impatient(Flags{{"relay.query_timeout", "500ms"}, {"relay.cache_bytes", "0"}});
  NostrClient there(impatient.url());
  SqlSession blocker(impatient.database()->url());
  blocker.run("BEGIN");
  blocker.run("LOCK TABLE cn_relay.event_topics IN ACCESS EXCLUSIVE MODE");
  EXPECT_EQ(there.stored(kGlobal).closed, "error: query too slow");
  EXPECT_EQ(there.count("c", kGlobal), R"(["CLOSED","c","error: query too slow"])");
  EXPECT_EQ(impatient.metric(R"(todoke_query_failed_total{reason="query_too_slow"})"), 2);
  EXPECT_EQ(impatient.metric("todoke_query_seconds_count"), 2);
  blocker.run("ROLLBACK");
  // The read may need a new connection first.
  EXPECT_TRUE(await([&] { return there.stored(kGlobal).closed.empty(); }));
}

// More of each than fit into the first page of candidates, so that another index is tried.
TEST_P(FiltersTest, RareAndCommonValuesTogetherFindTheSameByEveryIndex) {
  const auto rare = topic('1');
  enable_topic(rig, rare);
  std::vector<Event> events;
  std::vector<Event> wanted;
  for (int i = 0; i < 120; ++i) {
    const bool is_rare = i % 24 == 0;
    const bool is_tagged = i % 3 != 1;
    Tags tags{{"t", "kukuri:global"}};
    if (is_rare) tags.push_back({"t", rare});
    if (is_tagged) tags.push_back({"k", "1"});
    tags.push_back({"l", "en"});
    events.push_back(note(i % 2 == 0 ? alice : bob, std::to_string(i), tags, 1, kTime + i / 2));
    if (is_rare && is_tagged) wanted.push_back(events.back());
  }
  store_all(events);
  const auto expected = hexes_of(newest_first(wanted));
  ASSERT_EQ(expected.size(), 5U);
  const auto by_topic = fmt::format(R"({{"#t":["{}"],"#k":["1"],"#l":["en"]}})", rare);
  EXPECT_EQ(client.stored(by_topic).ids, expected);
  EXPECT_EQ(count(by_topic), "5");
  const auto limited = fmt::format(R"({{"#t":["{}"],"#l":["en"],"#k":["1"],"limit":4}})", rare);
  const auto newest = client.stored(limited);
  EXPECT_EQ(newest.ids, Ids(expected.begin(), expected.begin() + 4));
  EXPECT_EQ(client
                .stored(fmt::format(R"({{"#t":["{}"],"#l":["en"],"authors":["{}"],"limit":1}})", rare,
                                    hex_of(alice)))
                .ids,
            Ids({expected.front()}));
}

}  // namespace
}  // namespace todoke::test

#include "nostr/event_parse.hpp"

#include "nostr/event_id.hpp"
#include "nostr/test_support.hpp"

namespace todoke::nostr {
namespace {

using test::parsed;
using test::refusal;
using test::replaced;
using test::Tags;
using test::tags_of;

const Event& sample() {
  static const auto event = test::event_with(
      1, {{"e", test::kHexA}, {}, {"t", test::kTopic, "x", ""}, {"d"}, {"q", "a\"b\n"}}, R"(hi \ 届け)");
  return event;
}

std::string json() {
  return std::string(sample().json());
}

void expect_same(const Event& a, const Event& b) {
  EXPECT_EQ(a.id(), b.id());
  EXPECT_EQ(a.pubkey(), b.pubkey());
  EXPECT_EQ(a.sig(), b.sig());
  EXPECT_EQ(a.kind(), b.kind());
  EXPECT_EQ(a.created_at(), b.created_at());
  EXPECT_EQ(a.content(), b.content());
  EXPECT_EQ(tags_of(a), tags_of(b));
}

TEST(EventParse, ReadsAllMembers) {
  const auto event = parsed(json());
  expect_same(event, sample());
  EXPECT_EQ(tags_of(event),
            (Tags{{"e", test::kHexA}, {}, {"t", test::kTopic, "x", ""}, {"d"}, {"q", "a\"b\n"}}));
  EXPECT_EQ(event.content(), R"(hi \ 届け)");
  EXPECT_EQ(event.tag_count(), 5U);
}

TEST(EventParse, GivesTheFirstValueOfATag) {
  const auto event = parsed(json());
  EXPECT_EQ(event.first_value("t"), test::kTopic);
  EXPECT_EQ(event.first_value("d"), "") << "a tag without value";
  EXPECT_EQ(event.first_value("x"), std::nullopt);
  EXPECT_TRUE(event.may_have_tag('e'));
  EXPECT_FALSE(event.may_have_tag('E'));
  EXPECT_FALSE(event.may_have_tag('d')) << "no value";
  EXPECT_FALSE(event.may_have_tag('#'));
}

TEST(EventParse, KeepsCompactCanonicalTextAsItWasReceived) {
  const auto text = json();
  EXPECT_EQ(parsed(text).json(), text);
  // Another order of the members is compact as well.
  const auto sig = R"("sig":")" + sample().sig().hex() + R"(")";
  const auto moved = "{" + sig + "," + replaced(text.substr(1), "," + sig, "");
  EXPECT_EQ(parsed(moved).json(), moved);
  EXPECT_EQ(compute_id(parsed(moved)), sample().id());
}

TEST(EventParse, WritesAnewWhatIsNotCompactOrNotCanonical) {
  const auto text = json();
  for (const auto& other :
       {" " + text + "\n", replaced(text, ":[", ": ["), replaced(text, ",", " ,"), replaced(text, "}", "\t}"),
        replaced(text, "届け", R"(\u5c4a\u3051)"), replaced(text, "hi", R"(\u0068i)"),
        replaced(text, "\"id\"", R"("\u0069d")"), replaced(text, "{", R"({"extra":{"id":[1,2.5e3]},)"),
        replaced(text, "\"e\"", R"("\u0065")")}) {
    const auto event = parsed(other);
    expect_same(event, sample());
    EXPECT_EQ(event.json(), text) << other;
    EXPECT_EQ(compute_id(event), sample().id()) << other;
  }
}

TEST(EventParse, NegativeZeroIsZero) {
  const auto event = test::event_with(1, {}, "x", 0);
  const auto other = replaced(event.json(), R"("created_at":0)", R"("created_at":-0)");
  EXPECT_EQ(parsed(other).json(), event.json());
}

TEST(EventParse, U0000Survives) {
  const std::string nul("a\0b", 3);
  const auto event = test::event_with(1, {{"t", nul}}, nul);
  EXPECT_NE(event.json().find(R"("content":"a\u0000b")"), std::string_view::npos);
  const auto again = parsed(event.json());
  EXPECT_EQ(again.content(), nul);
  EXPECT_EQ(again.first_value("t"), nul);
  EXPECT_EQ(compute_id(again), event.id());
  std::string row;
  append_event_json(row, again.id(), again.pubkey(), again.created_at(), again.kind(), again.tags_json(),
                    again.content(), again.sig());
  EXPECT_EQ(row, event.json());
}

TEST(EventParse, RefusesWhatIsNotExactlyAnEvent) {
  const auto text = json();
  const auto id = sample().id().hex();
  const auto sig = sample().sig().hex();
  const auto created = R"("created_at":)" + std::to_string(test::kNow);
  struct Case {
    std::string text;
    std::string_view refusal;
  };
  const auto upper = [](std::string hex) {
    for (auto& c : hex) c = static_cast<char>(std::toupper(c));
    return hex;
  };
  const auto bad_id = "invalid: id must be 64 lower-case hex digits";
  const auto bad_time = "invalid: created_at must be an integer";
  const auto bad_kind = "invalid: kind must be an integer from 0 to 65535";
  const auto bad_tags = "invalid: tags must be an array of arrays of strings";
  const auto not_json = "invalid: message is not JSON";
  const auto lone = "invalid: lone surrogate";
  const std::vector<Case> cases = {
      {replaced(text, id, upper(id)), bad_id},
      {replaced(text, id, "0x" + id.substr(2)), bad_id},
      {replaced(text, id, id.substr(1)), bad_id},
      {replaced(text, R"(")" + id + R"(")", "null"), bad_id},
      {replaced(text, sample().pubkey().hex(), upper(sample().pubkey().hex())),
       "invalid: pubkey must be 64 lower-case hex digits"},
      {replaced(text, sig, sig.substr(2)), "invalid: sig must be 128 lower-case hex digits"},
      {replaced(text, created, R"("created_at":1.0)"), bad_time},
      {replaced(text, created, R"("created_at":1e+10)"), bad_time},
      {replaced(text, created, R"("created_at":"1")"), bad_time},
      {replaced(text, created, R"("created_at":9223372036854775808)"), bad_time},
      {replaced(text, created, R"("created_at":-9223372036854775809)"), bad_time},
      {replaced(text, created, R"("created_at":1e999)"), bad_time},
      {replaced(text, created, R"("created_at":true)"), bad_time},
      {replaced(text, R"("kind":1)", R"("kind":65536)"), bad_kind},
      {replaced(text, R"("kind":1)", R"("kind":70000)"), bad_kind},
      {replaced(text, R"("kind":1)", R"("kind":-1)"), bad_kind},
      {replaced(text, R"("kind":1)", R"("kind":1.5)"), bad_kind},
      {replaced(text, R"("kind":1)", R"("kind":"1")"), bad_kind},
      {replaced(text, R"(["d"])", R"("d")"), bad_tags},
      {replaced(text, R"(["d"])", "[1]"), bad_tags},
      {replaced(text, R"(["d"])", "[null]"), bad_tags},
      {replaced(text, R"(["d"])", R"([["d"]])"), bad_tags},
      {replaced(text, R"(["d"])", "{}"), bad_tags},
      {replaced(text, sample().tags_json(), "{}"), bad_tags},
      {replaced(text, sample().content_json(), "17"), "invalid: content must be a string"},
      {replaced(text, "hi", R"(\ud83d)"), lone},
      {replaced(text, "hi", R"(\ude00)"), lone},
      {replaced(text, "\"d\"", R"("\ud83dx")"), lone},
      {replaced(text, R"("kind":1,)", ""), "invalid: missing event member"},
      {"{}", "invalid: missing event member"},
      {replaced(text, "{", R"({"kind":1,)"), "invalid: duplicate event member"},
      {replaced(text, "{", R"({"\u006bind":1,)"), "invalid: duplicate event member"},
      {"[]", "invalid: event must be an object"},
      {"17", "invalid: event must be an object"},
      {R"("x")", "invalid: event must be an object"},
      {text + "x", not_json},
      {text + "}", not_json},
      {text + text, not_json},
      {text.substr(0, text.size() - 1), not_json},
      {text.substr(0, text.size() / 2), not_json},
      {"", not_json},
      {" ", not_json},
      {"{", not_json},
      {"nonsense", not_json},
      {replaced(text, "hi", "\xff"), not_json},
      {replaced(text, "hi", "\xed\xa0\x80"), not_json},
      {replaced(text, "hi", "\xc0\x80"), not_json},
      {replaced(text, "hi", "a\nb"), not_json},
      {replaced(text, "hi", std::string(1, '\0')), not_json},
      {replaced(text, "hi", R"(\x)"), not_json},
      {replaced(text, "hi", R"(\u12)"), not_json},
      {replaced(text, R"("kind":1)", R"("kind":01)"), not_json},
      {replaced(text, R"("kind":1)", R"("kind":1 2)"), not_json},
      {replaced(text, R"("kind":1)", R"("kind":+1)"), not_json},
      {replaced(text, R"("kind":1)", R"("kind" 1)"), not_json},
      {replaced(text, R"("kind":1)", "kind:1"), not_json},
      {replaced(text, R"(,"kind")", R"(,,"kind")"), not_json},
      {replaced(text, R"(,"kind")", R"( "kind")"), not_json},
      {replaced(text, R"(["d"])", R"(["d",])"), not_json},
      {replaced(text, R"(["d"])", R"(["d"})"), not_json},
      {replaced(text, "{", R"({"extra":[1,],)"), not_json},
      {replaced(text, "{", R"({"extra":tru,)"), not_json},
      {replaced(text, "{", R"({"extra":"a":1,)"), not_json},
      {replaced(text, "{", R"({"ex\xtra":1,)"), not_json},
      {replaced(text, "{", R"({"extra":"\q",)"), not_json},
      {replaced(text, "{", R"({"extra":-,)"), not_json},
      {replaced(text, "{", R"({"extra":1.,)"), not_json},
      {replaced(text, "{", R"({"extra":{"a":1,},)"), not_json},
      {replaced(text, "{", "{\"extra\":" + std::string(100, '[') + std::string(100, ']') + ","),
       "invalid: message too deep"},
  };
  for (const auto& one : cases) EXPECT_EQ(refusal(one.text), one.refusal) << one.text;
}

TEST(EventParse, ARefusalNamesTheIdThatWasSent) {
  const auto text = json();
  const auto id = sample().id().hex();
  const auto named = [](const std::string& wrong) { return parse_event(wrong, {}).error().id; };
  EXPECT_EQ(named(replaced(text, R"("kind":1)", R"("kind":-1)")), id);
  EXPECT_EQ(named(replaced(text, "{", R"({"kind":70000,"more":[[{}]],)")), id) << "the fault comes first";
  EXPECT_EQ(named(replaced(text, id, "ABC")), "ABC");
  EXPECT_EQ(named(replaced(text, id, std::string(600, 'a'))), "") << "too long to repeat";
  EXPECT_EQ(named("{}"), "");
  EXPECT_EQ(named(R"({"id":7})"), "");
}

TEST(EventParse, HoldsTheLimits) {
  const auto text = json();
  EventLimits limits;
  limits.tags_max = 5;
  limits.tag_values_max = 4;
  limits.event_bytes_max = text.size();
  EXPECT_EQ(refusal(text, limits), "");
  EXPECT_EQ(refusal("  " + text + "  ", limits), "") << "white space does not count";
  limits.tags_max = 4;
  EXPECT_EQ(refusal(text, limits), "invalid: too many tags");
  limits = {};
  limits.tag_values_max = 3;
  EXPECT_EQ(refusal(text, limits), "invalid: too many values in a tag");
  limits = {};
  limits.tags_bytes_max = 3;
  EXPECT_EQ(refusal(text, limits), "invalid: tags too large");
  limits = {};
  limits.event_bytes_max = text.size() - 1;
  EXPECT_EQ(refusal(text, limits), "invalid: event too large");
  EXPECT_EQ(refusal(" " + text, limits), "invalid: event too large");
  EXPECT_EQ(parse_event(text, limits).error().id, sample().id().hex());
  EXPECT_EQ(refusal(std::string(kEventTextBytesMax + 1, ' '), {}), "invalid: message too long");
}

TEST(EventParse, TakesWhatOtherRelaysRefuseWronglyOrTakeForOddities) {
  for (const auto& tags :
       {Tags{{}, {}}, Tags{{""}}, Tags{{"e", "not hex"}}, Tags{{"p"}}, Tags{{"", "", ""}}}) {
    const auto event = test::event_with(1, tags, "\x7f\xe2\x80\xa8\xef\xbf\xbe\xf0\x9f\x98\x80/");
    EXPECT_EQ(refusal(event.json()), "");
    EXPECT_TRUE(has_right_id(parsed(event.json())));
  }
  for (const auto time :
       {std::int64_t{0}, std::int64_t{-1}, std::int64_t{5'000'000'000},
        std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}) {
    const auto event = test::event_with(65535, {}, "", time);
    EXPECT_EQ(parsed(event.json()).created_at(), time);
    EXPECT_EQ(parsed(event.json()).json(), event.json());
  }
}

TEST(EventParse, EventsOutliveTheTextAndTheNextParse) {
  auto text = json();
  const auto first = parsed(text);
  text.assign(text.size(), 'x');
  const auto second = parsed(test::event_with(7, {{"a", "b"}}, "other").json());
  auto moved = first;
  const auto taken = std::move(moved);
  expect_same(taken, sample());
  EXPECT_EQ(second.content(), "other");
}

}  // namespace
}  // namespace todoke::nostr

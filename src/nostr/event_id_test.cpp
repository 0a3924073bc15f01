#include "nostr/event_id.hpp"

#include <limits>
#include <random>

#include <fmt/format.h>

#include "nostr/test_support.hpp"

namespace todoke::nostr {
namespace {

using namespace std::string_literals;

// Computed with Python's json (ensure_ascii=False) and hashlib, which escape these characters in the same
// way.
TEST(EventIdTest, AgreesWithAnotherImplementation) {
  struct Case {
    std::int64_t created_at;
    Kind kind;
    test::Tags tags;
    std::string content;
    std::string_view id;
  };
  const std::vector<Case> cases = {
      {1'700'000'000, 1, {}, "hello", "a9d53fee641fe563de947fa330a3b4902e52e249894660aaa521cd039e896128"},
      {-5,
       65535,
       {{}, {"a"}, {"t", "x", "y"}},
       "",
       "c2ad0d35c4d1ce9a194067a567e76752412bba87d78dbac4c661ac917aecf3d3"},
      {0,
       0,
       {{"x", "\n"}},
       "q\" b\\ n\n r\r t\t b\b f\f /",
       "00939d39cff532ae2fed13b7cfeb2cfad95c180ba30dce717e68e34bcd7cb49d"},
      {std::numeric_limits<std::int64_t>::max(),
       30000,
       {{"t", "\0"s}},
       "\x00\x01\x0b\x1f\x7f\u2028😀届け\ufffe"s,
       "f4e04e09981c9d6b273fe844701cc74c0504de2975cba61b8ccc67e8fc0f466e"},
  };
  for (const auto& one : cases) {
    const auto event = test::event_with(one.kind, one.tags, one.content, one.created_at);
    EXPECT_EQ(event.id().hex(), one.id);
    EXPECT_EQ(compute_id(event).hex(), one.id);
  }
}

TEST(EventIdTest, HashesExactlyTheCanonicalText) {
  const auto event = test::event_with(1, {{"a", "\"\\/\n"}, {}}, "\x01\x7f😀");
  EXPECT_EQ(canonical_text(event),
            "[0,\"f9308a019258c31049344f85f89d5229b531c845836f99b08601f113bce036f9\",1700000000,1,"
            "[[\"a\",\"\\\"\\\\/\\n\"],[]],\"\\u0001\x7f😀\"]");
}

TEST(EventIdTest, AChangedEventHasAnotherId) {
  const auto event = test::event_with(1, {{"t", "x"}}, "hello");
  EXPECT_TRUE(has_right_id(event));
  for (const auto& [what, by] :
       std::vector<std::pair<std::string, std::string>>{{"hello", "hellp"},
                                                        {"\"x\"", "\"y\""},
                                                        {"\"kind\":1", "\"kind\":2"},
                                                        {":1700000000", ":1700000001"}}) {
    EXPECT_FALSE(has_right_id(test::parsed(test::replaced(event.json(), what, by)))) << what;
  }
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::size_t below(std::size_t n) { return engine_() % n; }

  std::string text() {
    static const std::vector<std::string> kPieces = {
        "a",    "Z",    "\"", "\\", "/",  "\n",     "\r",     "\t", "\b", "\f", "\0"s, "\x01",
        "\x1f", "\x7f", "é",  "届", "😀", "\u2028", "\ufffe", " ",  "{",  "]",  ",",   "u0041"};
    std::string out;
    for (auto n = below(12); n > 0; --n) out += kPieces[below(kPieces.size())];
    return out;
  }

  // `text` as some JSON string that means it.
  std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      const auto shorts = "\"\\/\n\r\t\b\f"s;
      const auto at = shorts.find(c);
      if (at != std::string::npos && below(4) != 0) {
        if (c == '/' && below(2) == 0) {
          out.push_back('/');
        } else {
          out.push_back('\\');
          out.push_back("\"\\/nrtbf"[at]);
        }
      } else if (byte < 0x20 || byte == '"' || byte == '\\' || (byte < 0x80 && below(8) == 0)) {
        out += below(2) == 0 ? fmt::format("\\u{:04x}", byte) : fmt::format("\\u{:04X}", byte);
      } else {
        out.push_back(c);
      }
    }
    return out + "\"";
  }

  std::string space() {
    std::string out;
    if (below(12) == 0) out.resize(below(3), ' ');
    return out;
  }

 private:
  std::mt19937_64 engine_;
};

// The fast path hashes slices of the received text; the slow one serialises decoded values.
TEST(EventIdTest, HashingTheReceivedTextEqualsSerialisingTheValues) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  Random random(seed);
  for (int round = 0; round < 3'000; ++round) {
    test::Tags tags(random.below(4));
    for (auto& tag : tags) {
      tag.resize(random.below(4));
      for (auto& text : tag) text = random.text();
    }
    const auto content = random.text();
    const auto event = test::event_with(static_cast<Kind>(random.below(65536)), tags, content);
    std::string tags_json = "[";
    for (const auto& tag : tags) {
      if (tags_json.size() > 1) tags_json += ",";
      tags_json += "[";
      for (const auto& text : tag) {
        if (tags_json.back() != '[') tags_json += "," + random.space();
        tags_json += random.quoted(text);
      }
      tags_json += "]";
    }
    tags_json += "]";
    const auto text = fmt::format(
        R"({{"id":"{}","pubkey":"{}","created_at":{},"kind":{},"tags":{}{},"content":{},"sig":"{}"}})",
        event.id().hex(), event.pubkey().hex(), event.created_at(), event.kind(), random.space(), tags_json,
        random.quoted(content), event.sig().hex());
    const auto read = test::parsed(text);
    ASSERT_EQ(test::tags_of(read), tags) << text;
    ASSERT_EQ(read.content(), content) << text;
    ASSERT_EQ(read.json(), event.json()) << text;
    ASSERT_EQ(compute_id(read), event.id()) << text;
    ASSERT_EQ(hash_of(canonical_text(read)), event.id()) << text;
  }
}

TEST(Difficulty, CountsLeadingZeroBits) {
  const auto bits = [](std::string_view start) {
    return difficulty_of(*EventId::from_hex(std::string(start) + std::string(64 - start.size(), '0')));
  };
  EXPECT_EQ(bits("8"), 0U);
  EXPECT_EQ(bits("1"), 3U);
  EXPECT_EQ(bits("01"), 7U);
  EXPECT_EQ(bits("002f"), 10U);
  EXPECT_EQ(bits("000000000e9d97a1ab09fc381030b346cdd7a142ad57e6df0b46dc9bef6c7e2d"), 36U) << "NIP-13";
  EXPECT_EQ(bits(""), 256U);
}

}  // namespace
}  // namespace todoke::nostr

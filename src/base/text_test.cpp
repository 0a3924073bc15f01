// Hex, hashes, files, JSON text, backoff and errors: the small pieces.
#include "base/text.hpp"

#include <array>
#include <chrono>
#include <limits>
#include <unistd.h>
#include <utility>

#include <gtest/gtest.h>

#include "base/backoff.hpp"
#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/json_writer.hpp"
#include "base/sha256.hpp"

namespace todoke {
namespace {

TEST(Hex, GoesBothWaysInLowerCaseOnly) {
  std::array<std::uint8_t, 3> bytes{};
  ASSERT_TRUE(from_hex("00ff7a", bytes));
  EXPECT_EQ(to_hex(bytes), "00ff7a");
  EXPECT_FALSE(from_hex("00FF7A", bytes));
  EXPECT_FALSE(from_hex("00ff7", bytes));
  EXPECT_FALSE(from_hex("00ff7a00", bytes));
  EXPECT_FALSE(from_hex("00ff7g", bytes));
}

TEST(Hex, IsAppended) {
  std::string text = "x";
  append_hex(text, std::array<std::uint8_t, 2>{0x0A, 0xFF});
  EXPECT_EQ(text, "x0aff");
}

TEST(Sha256, HashesThePiecesAsOneText) {
  EXPECT_EQ(to_hex(sha256({"abc"})), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256({"a", "", "bc"}), sha256({"abc"}));
}

TEST(Fd, ClosesWhatItOwnsOnce) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(pipe(ends), 0);
  Fd reader(ends[0]);
  Fd writer(ends[1]);
  Fd moved(std::move(writer));
  EXPECT_FALSE(writer);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(moved.get(), ends[1]);
  moved.reset();
  char byte = 0;
  EXPECT_EQ(read(reader.get(), &byte, 1), 0) << "the other end is closed";
  EXPECT_FALSE(moved);
  const int raw = reader.release();
  EXPECT_FALSE(reader);
  EXPECT_EQ(close(raw), 0);
}

TEST(Random, GivesOtherBytesEachTime) {
  EXPECT_EQ(random_hex(300).size(), 600U);
  EXPECT_NE(random_hex(16), random_hex(16));
}

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

TEST(Json, EscapesWhatMustBeEscapedAndNothingElse) {
  EXPECT_EQ(json_string("a\"b\\c\n\r\t\b\f/"), R"("a\"b\\c\n\r\t\b\f/")");
  EXPECT_EQ(json_string(std::string_view("\x00\x1f\x7f", 3)), "\"\\u0000\\u001f\x7f\"");
  EXPECT_EQ(json_string("届け😀"), "\"届け😀\"");
}

TEST(Json, ReplacesBytesThatAreNoUtf8) {
  EXPECT_EQ(json_string("a\xFFz"), "\"a\xEF\xBF\xBDz\"");
  EXPECT_EQ(json_string("\xED\xA0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"") << "a surrogate";
  EXPECT_EQ(json_string("\xC0\xAF"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"") << "an overlong form";
  EXPECT_EQ(json_string("\xE5\xB1"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"") << "cut off";
}

TEST(Json, WritesNestedValuesWithCommasInPlace) {
  JsonWriter json;
  json.begin_object().member("a", 1).key("b").begin_array().value(true).null().value(0.5).end_array();
  json.key("c").begin_object().end_object().member("d", "x").end_object();
  EXPECT_EQ(json.text(), R"({"a":1,"b":[true,null,0.5],"c":{},"d":"x"})");
}

TEST(Backoff, DoublesUpToItsMostWithAtMostAFifthOfJitter) {
  using std::chrono::milliseconds;
  Backoff backoff(milliseconds(100), milliseconds(400));
  for (const auto base : {100, 200, 400, 400}) {
    const auto delay = backoff.next();
    EXPECT_GE(delay, milliseconds(base));
    EXPECT_LE(delay, milliseconds(base + base / 5));
  }
  backoff.reset();
  EXPECT_LE(backoff.next(), milliseconds(120));
}

TEST(Describe, TellsWhatAnExceptionSays) {
  EXPECT_EQ(describe(std::make_exception_ptr(std::runtime_error("x"))), "x");
  EXPECT_EQ(describe(std::make_exception_ptr(7)), "unknown error");
  EXPECT_EQ(describe(nullptr), "no error");
}

TEST(ParseNumber, TakesAWholeTextThatTheTypeHolds) {
  EXPECT_EQ(parse_number<std::int64_t>("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(parse_number<std::uint16_t>("65535"), 65'535);
  EXPECT_EQ(parse_number<double>("0.25"), 0.25);
  for (const auto* text : {"", " 1", "1 ", "+1", "0x1", "1.", "65536", "-1"})
    EXPECT_FALSE(parse_number<std::uint16_t>(text)) << text;
}

}  // namespace
}  // namespace todoke

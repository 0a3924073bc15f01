#include "base/percent.hpp"

#include <gtest/gtest.h>

namespace todoke {
namespace {

TEST(Percent, EscapesDecodeAndOtherTextStays) {
  EXPECT_EQ(percent_decode("a%20b+c").value(), "a b+c");
  EXPECT_EQ(percent_decode("%e5%b1%8A").value(), "届");
  EXPECT_EQ(percent_decode("%2F").value(), "/");
  EXPECT_EQ(percent_decode("%41").value(), "A") << "an escape at the very end of the text";
}

TEST(Percent, WrongEscapesAreRefused) {
  for (const auto* bad : {"%", "%4", "a%4", "%zz", "%4g", "%%41", "%00", "%ff", "%c3"}) {
    EXPECT_FALSE(percent_decode(bad)) << bad;
  }
}

TEST(Percent, EncodedTextDecodesToItself) {
  const std::string text = "a/b?c=d&e f%+届~";
  EXPECT_EQ(percent_decode(percent_encode(text)).value(), text);
  EXPECT_EQ(percent_encode("a/b ~"), "a%2Fb%20~");
}

TEST(Percent, QueryKeepsOrderDuplicatesAndEmptyValues) {
  const auto pairs = parse_query("b=2&a=1&b=x+y&flag&&e=a%3Db").value();
  const std::vector<std::pair<std::string, std::string>> expected{
      {"b", "2"}, {"a", "1"}, {"b", "x y"}, {"flag", ""}, {"e", "a=b"}};
  EXPECT_EQ(pairs, expected);
}

TEST(Percent, QueryWithWrongEscapeOrTooManyPairsIsRefused) {
  EXPECT_FALSE(parse_query("a=%4"));
  EXPECT_FALSE(parse_query("%4=a"));
  std::string many;
  for (std::size_t i = 0; i < kQueryPairsMax; ++i) many += "a=1&";
  EXPECT_TRUE(parse_query(many));
  EXPECT_FALSE(parse_query(many + "a=1"));
}

}  // namespace
}  // namespace todoke

#include "base/timestamp.hpp"

#include <gtest/gtest.h>

namespace todoke {
namespace {

std::string in_utc(std::string_view text) {
  const auto time = parse_timestamp(text);
  return time ? format_timestamp(*time) : "refused";
}

TEST(Timestamp, IsReadWithItsOffset) {
  EXPECT_EQ(in_utc("2025-08-24T12:34:56Z"), "2025-08-24T12:34:56.000000Z");
  EXPECT_EQ(in_utc("2025-08-24T12:34:56.789+09:00"), "2025-08-24T03:34:56.789000Z");
  EXPECT_EQ(in_utc("2025-08-24T12:34:56.123456789-00:30"), "2025-08-24T13:04:56.123456Z");
  EXPECT_EQ(in_utc("2024-02-29T00:00:00+09:00"), "2024-02-28T15:00:00.000000Z");
  EXPECT_EQ(in_utc("2016-12-31T23:59:60Z"), "2017-01-01T00:00:00.000000Z");
  EXPECT_EQ(in_utc("2025-08-24t12:34:56z"), "2025-08-24T12:34:56.000000Z");
  EXPECT_EQ(in_utc("1969-12-31T23:59:59.5Z"), "1969-12-31T23:59:59.500000Z");
}

TEST(Timestamp, IsWrittenWithAsManyDigitsAsAreAskedFor) {
  const auto time = *parse_timestamp("2025-08-24T03:34:56.789123Z");
  EXPECT_EQ(format_timestamp(time), "2025-08-24T03:34:56.789123Z");
  EXPECT_EQ(format_timestamp(time, 3), "2025-08-24T03:34:56.789Z");
  EXPECT_EQ(format_timestamp(time, 0), "2025-08-24T03:34:56Z");
}

TEST(HttpDate, GoesBothWays) {
  const auto time = *parse_timestamp("2025-08-24T03:34:56Z");
  EXPECT_EQ(format_http_date(time), "Sun, 24 Aug 2025 03:34:56 GMT");
  EXPECT_EQ(parse_http_date("Sun, 24 Aug 2025 03:34:56 GMT"), time);
  EXPECT_EQ(format_http_date(*parse_timestamp("2024-02-29T23:00:00Z")), "Thu, 29 Feb 2024 23:00:00 GMT");
  for (const auto* text : {"", "2025-08-24T03:34:56Z", "Sun, 24 Aug 2025 03:34:56 GMT+1", "Sun, 24 Aug 2025",
                           "Sun, 24 Aug 0025 03:34:56 GMT", "Sun, 24 Aug 9999 03:34:56 GMT"}) {
    EXPECT_EQ(parse_http_date(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_http_date(std::string("Sun, 24 Aug 2025 03:34:56 GMT\0x", 31)), std::nullopt);
}

TEST(Timestamp, RefusesWhatIsNone) {
  for (const auto* text :
       {"", "2025-08-24", "2025-08-24T12:34:56", "2025-02-29T12:34:56Z", "2025-13-01T12:34:56Z",
        "2025-00-01T12:34:56Z", "2025-08-24T24:00:00Z", "2025-08-24T12:60:00Z", "2025-08-24T12:34:61Z",
        "2025-08-24T12:34:56.Z", "2025-08-24 12:34:56Z", "2025-08-24T12:34:56+0900",
        "2025-08-24T12:34:56+24:00", "2025-08-24T12:34:56Zx", "25-08-24T12:34:56Z", "2025-8-24T12:34:56Z",
        "1600-01-01T00:00:00Z", "9999-01-01T00:00:00Z", "+025-08-24T12:34:56Z"}) {
    EXPECT_EQ(in_utc(text), "refused") << text;
  }
}

}  // namespace
}  // namespace todoke

#include "api/cursor.hpp"

#include <gtest/gtest.h>

#include "api/schema.hpp"
#include "base/base64.hpp"
#include "base/bytes.hpp"

namespace todoke::api {
namespace {

TEST(CursorTest, GivesItsValuesBack) {
  const std::vector<std::string> values{"2026-01-31T12:00:00.000001Z", "日本", "x"};
  const auto cursor = cursor_of(values);
  EXPECT_TRUE(kCursor.matches(cursor));
  EXPECT_EQ(values_of_cursor(cursor, 3), values);
}

TEST(CursorTest, WhatNobodyHasMadeIsNone) {
  EXPECT_FALSE(values_of_cursor(cursor_of({"a", "b"}), 3));
  EXPECT_FALSE(values_of_cursor(cursor_of({"a", "b", "c"}), 2));
  EXPECT_FALSE(values_of_cursor("***", 1));
  EXPECT_FALSE(values_of_cursor(to_base64(as_bytes("\xff"), Base64::url), 1));
  EXPECT_FALSE(values_of_cursor(to_base64(as_bytes(std::string_view("a\0b", 3)), Base64::url), 1));
}

}  // namespace
}  // namespace todoke::api

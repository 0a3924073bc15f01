#include <limits>

#include "pg/support.hpp"

namespace todoke::pg {
namespace {

class Types : public testing::Test {
 protected:
  // What the server makes of `value`, as text, and the value that comes back.
  template <class T>
  T echo(const T& value, const std::string& type) {
    return run_task([&]() -> Task<T> {
      const auto connection = co_await db_.connect();
      const auto sql = "SELECT $1::" + type;
      Params params(value);
      const auto result = co_await connection->query({"echo", sql}, std::move(params), soon());
      co_return result.one().template get<T>(0);
    });
  }

  template <class T>
  std::string as_text(const T& value, const std::string& type) {
    return run_task([&]() -> Task<std::string> {
      const auto connection = co_await db_.connect();
      const auto sql = "SELECT ($1::" + type + ")::text";
      Params params(value);
      const auto result = co_await connection->query({"as_text", sql}, std::move(params), soon());
      co_return result.one().template get<std::string>(0);
    });
  }

  TestDatabase db_;
};

TEST_F(Types, ScalarsSurviveTheRoundTrip) {
  EXPECT_EQ(echo(true, "bool"), true);
  EXPECT_EQ(echo(false, "bool"), false);
  EXPECT_EQ(echo(std::numeric_limits<std::int16_t>::min(), "int2"), std::numeric_limits<std::int16_t>::min());
  EXPECT_EQ(echo(std::numeric_limits<std::int32_t>::max(), "int4"), std::numeric_limits<std::int32_t>::max());
  EXPECT_EQ(echo(std::numeric_limits<std::int64_t>::min(), "int8"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(echo(std::numeric_limits<double>::denorm_min(), "float8"),
            std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(echo(std::numeric_limits<double>::infinity(), "float8"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(echo(std::string(), "text"), "");
  EXPECT_EQ(echo(std::string("届け 🚚"), "text"), "届け 🚚");
  EXPECT_EQ(echo(std::string(3'000'000, 'x'), "text").size(), 3'000'000u);
  EXPECT_EQ(echo(std::string("name"), "varchar"), "name");
  EXPECT_EQ(echo(std::vector<std::uint8_t>{0, 255, 0}, "bytea"), (std::vector<std::uint8_t>{0, 255, 0}));
  EXPECT_EQ(echo(std::vector<std::uint8_t>{}, "bytea"), std::vector<std::uint8_t>{});
  EXPECT_EQ(echo(Json{R"({"b": 1,  "a":2})"}, "json").text, R"({"b": 1,  "a":2})");
  EXPECT_EQ(echo(Jsonb{R"({"b": 1,  "a":2})"}, "jsonb").text, R"({"a": 2, "b": 1})");
}

TEST_F(Types, TimesAreThoseOfTheServerToTheMicrosecond) {
  const SystemTime time{std::chrono::microseconds(1'700'000'000'123'456)};
  EXPECT_EQ(as_text(time, "timestamptz at time zone 'UTC'"), "2023-11-14 22:13:20.123456");
  EXPECT_EQ(echo(time, "timestamptz"), time);
  const SystemTime before{std::chrono::microseconds(-1)};
  EXPECT_EQ(as_text(before, "timestamptz at time zone 'UTC'"), "1969-12-31 23:59:59.999999");
  const auto earliest = std::chrono::ceil<std::chrono::microseconds>(SystemTime::min());
  EXPECT_EQ(echo(SystemTime(earliest), "timestamptz"), SystemTime(earliest));
  const auto latest = std::chrono::floor<std::chrono::microseconds>(SystemTime::max());
  EXPECT_EQ(echo(SystemTime(latest), "timestamptz"), SystemTime(latest));
}

TEST_F(Types, NullIsAnEmptyOptional) {
  EXPECT_EQ(echo(std::optional<std::int32_t>(), "int4"), std::nullopt);
  EXPECT_EQ(echo(std::optional<std::int32_t>(7), "int4"), 7);
  EXPECT_EQ(echo(std::optional<std::string>(), "text"), std::nullopt);
  using Numbers = std::vector<std::int64_t>;
  EXPECT_EQ(echo(std::optional<Numbers>(), "int8[]"), std::nullopt);
  EXPECT_EQ(echo(std::optional<Numbers>(Numbers{1}), "int8[]"), (Numbers{1}));
}

TEST_F(Types, ArraysOfEveryTypeSurviveTheRoundTrip) {
  const auto check = [this](const auto& list, const char* type) {
    EXPECT_EQ(echo(list, type), list) << type;
  };
  check(std::vector<bool>{true, false, true}, "bool[]");
  check(std::vector<std::int16_t>{-1, 0, 1}, "int2[]");
  check(std::vector<std::int32_t>{-1, 0, 1}, "int4[]");
  check(std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::max()}, "int8[]");
  check(std::vector<double>{-0.5, 1e300}, "float8[]");
  check(std::vector<std::string>{"", "a,b", "\"", "{}", "NULL"}, "text[]");
  check(std::vector<std::string>{"a"}, "varchar[]");
  check(std::vector<std::vector<std::uint8_t>>{{1, 2}, {}, {0}}, "bytea[]");
  check(std::vector<Json>{{"1"}, {"{}"}}, "json[]");
  check(std::vector<Jsonb>{{"1"}, {"{}"}}, "jsonb[]");
  check(std::vector<SystemTime>{SystemTime{}, SystemTime{1s}}, "timestamptz[]");
}

TEST_F(Types, ArraysMayBeEmptyOrHoldNull) {
  EXPECT_TRUE(echo(std::vector<std::string>(), "text[]").empty());
  const std::vector<std::optional<std::int64_t>> numbers{1, std::nullopt, 3};
  EXPECT_EQ(echo(numbers, "int8[]"), numbers);
  EXPECT_EQ(as_text(numbers, "int8[]"), "{1,NULL,3}");
  const std::vector<std::optional<std::string>> texts{std::nullopt, ""};
  EXPECT_EQ(echo(texts, "text[]"), texts);
  const std::vector<std::optional<std::vector<std::uint8_t>>> bytes{std::nullopt,
                                                                    std::vector<std::uint8_t>{7}};
  EXPECT_EQ(echo(bytes, "bytea[]"), bytes);
}

TEST_F(Types, SpansAndFixedArraysAreTaken) {
  const std::array<std::uint8_t, 2> id{0xAB, 0xCD};
  const std::array<std::int64_t, 2> numbers{1, 2};
  EXPECT_EQ(as_text(id, "bytea"), "\\xabcd");
  EXPECT_EQ(as_text(std::span<const std::uint8_t>(id), "bytea"), "\\xabcd");
  EXPECT_EQ(as_text(std::span<const std::int64_t>(numbers), "int8[]"), "{1,2}");
}

TEST_F(Types, MismatchesNameTheColumn) {
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    constexpr Statement kSelect{"mixed",
                                "SELECT 1::int4 AS number, 'x'::text AS word, NULL::int8 AS nothing, "
                                "ARRAY[1, NULL]::int4[] AS list, '{{1}}'::int4[] AS square"};
    const auto result = co_await connection->query(kSelect, {}, soon());
    const auto row = result.one();
    EXPECT_EQ(row.get<std::int32_t>("number"), 1);
    EXPECT_EQ(row.get<std::string_view>("word"), "x");
    EXPECT_TRUE(row.is_null(2));
    EXPECT_THROW(static_cast<void>(row.get<std::int64_t>(0)), TypeMismatch);
    EXPECT_THROW(static_cast<void>(row.get<std::int32_t>(1)), TypeMismatch);
    EXPECT_THROW(static_cast<void>(row.get<std::int64_t>(2)), TypeMismatch);
    EXPECT_THROW(static_cast<void>(row.get<std::vector<std::int32_t>>(3)), TypeMismatch);
    EXPECT_THROW(static_cast<void>(row.get<std::vector<std::int64_t>>(3)), TypeMismatch);
    EXPECT_THROW(static_cast<void>(row.get<std::vector<std::int32_t>>(4)), TypeMismatch);
    EXPECT_THROW(static_cast<void>(row.get<std::int32_t>(5)), TypeMismatch);
    EXPECT_THROW(static_cast<void>(row.get<std::int32_t>("missing")), TypeMismatch);
    try {
      static_cast<void>(row.get<std::int64_t>("number"));
      ADD_FAILURE() << "a mismatch went unnoticed";
    } catch (const TypeMismatch& mismatch) {
      EXPECT_STREQ(mismatch.what(), "column 0 (number) has type integer, asked for bigint");
    }
  });
}

TEST_F(Types, TextThatTheServerCantStoreIsRefusedByIt) {
  for (const auto& text : {std::string("a\0b", 3), std::string("\xff\xfe")}) {
    try {
      echo(text, "text");
      ADD_FAILURE() << "stored";
    } catch (const Error& error) {
      EXPECT_EQ(error.sqlstate(), "22021") << error.what();
    }
  }
}

TEST_F(Types, TheSameTextWithOtherTypesIsPreparedAnew) {
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    constexpr Statement kTypeOf{"type_of", "SELECT pg_typeof($1)::text"};
    const auto number = co_await connection->query(kTypeOf, {std::int64_t{1}}, soon());
    const auto word = co_await connection->query(kTypeOf, {"x"}, soon());
    EXPECT_EQ(number.one().get<std::string>(0), "bigint");
    EXPECT_EQ(word.one().get<std::string>(0), "text");
  });
}

TEST_F(Types, AffectedRowsAreCounted) {
  run_task([&]() -> Task<void> {
    const auto connection = co_await db_.connect();
    co_await connection->execute_script("CREATE TABLE t (n int)", soon());
    const auto inserted =
        co_await connection->query({"insert_some", "INSERT INTO t SELECT generate_series(1, 7)"}, {}, soon());
    EXPECT_EQ(inserted.affected(), 7);
    const auto read = co_await connection->query({"read_all", "SELECT n FROM t ORDER BY n"}, {}, soon());
    EXPECT_EQ(read.size(), 7u);
    std::int32_t sum = 0;
    for (const auto& row : read) sum += row.get<std::int32_t>(0);
    EXPECT_EQ(sum, 28);
    EXPECT_THROW(static_cast<void>(read.one()), TypeMismatch);
  });
}

}  // namespace
}  // namespace todoke::pg

#include "pg/codec.hpp"

#include <limits>

#include <gtest/gtest.h>

#include "base/bytes.hpp"
#include "pg/error.hpp"
#include "pg/params.hpp"
#include "pg/result.hpp"

namespace todoke::pg {
namespace {

template <class T>
std::string encoded(const T& value) {
  std::string out;
  Codec<T>::encode(out, value);
  return out;
}

template <class T>
T round_trip(const T& value) {
  return Codec<T>::decode(as_bytes(encoded(value)));
}

TEST(Codec, IntegersAreBigEndian) {
  EXPECT_EQ(to_hex(as_bytes(encoded(std::int32_t{1}))), "00000001");
  EXPECT_EQ(to_hex(as_bytes(encoded(std::int16_t{-2}))), "fffe");
  EXPECT_EQ(round_trip(std::numeric_limits<std::int64_t>::min()), std::numeric_limits<std::int64_t>::min());
}

TEST(Codec, TimeCountsMicrosecondsFromTheYear2000) {
  const SystemTime y2k{std::chrono::seconds(946'684'800)};
  EXPECT_EQ(to_hex(as_bytes(encoded(y2k))), "0000000000000000");
  EXPECT_EQ(to_hex(as_bytes(encoded(y2k - std::chrono::nanoseconds(1)))), "ffffffffffffffff");
}

TEST(Codec, InfiniteTimeIsRefused) {
  std::string infinity;
  append_int(infinity, static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()), 8);
  EXPECT_THROW(Codec<SystemTime>::decode(as_bytes(infinity)), TypeMismatch);
}

TEST(Codec, WrongSizesAreRefused) {
  EXPECT_THROW(Codec<std::int32_t>::decode(as_bytes("abc")), TypeMismatch);
  EXPECT_THROW(Codec<bool>::decode(as_bytes("")), TypeMismatch);
  EXPECT_THROW(Codec<double>::decode(as_bytes("123456789")), TypeMismatch);
}

TEST(Params, EachValueCarriesItsType) {
  const Params params(true, std::int64_t{1}, "text", std::optional<double>(), std::vector<std::string>{"a"});
  std::vector<Oid> oids;
  for (const auto& value : params.values()) oids.push_back(value.oid);
  EXPECT_EQ(oids, (std::vector<Oid>{16, 20, 25, 701, 1009}));
  EXPECT_EQ(params.data(params.values()[3]), nullptr);
}

TEST(Params, EmptyTextIsNotNull) {
  const Params params(std::string{});
  EXPECT_NE(params.data(params.values()[0]), nullptr);
  EXPECT_EQ(params.values()[0].length, 0u);
}

TEST(Params, TextWithANulByteIsNotCut) {
  const Params params(std::string_view("a\0b", 3));
  EXPECT_EQ(params.values()[0].length, 3u);
}

TEST(ArrayReader, DamagedArraysAreRefused) {
  std::string two_dimensions;
  for (const std::uint64_t word : {2u, 0u, 23u, 1u, 1u, 1u, 1u}) append_int(two_dimensions, word, 4);
  EXPECT_THROW(detail::ArrayReader{as_bytes(two_dimensions)}, TypeMismatch);

  std::string too_large;
  for (const std::uint64_t word : {1u, 0u, 23u, 1'000'000u, 1u}) append_int(too_large, word, 4);
  EXPECT_THROW(detail::ArrayReader{as_bytes(too_large)}, TypeMismatch);

  EXPECT_THROW(detail::ArrayReader{as_bytes("abc")}, TypeMismatch);
}

}  // namespace
}  // namespace todoke::pg

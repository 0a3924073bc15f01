// Postgres' binary format for the types that this program uses. One Codec for each type; arrays and NULL are
// built on them in params.hpp and result.hpp. Decoding checks the type and the size and throws TypeMismatch.
//
//   bool                              bool
//   std::int16_t, int32_t, int64_t    smallint, integer, bigint (no widening: the type must be the column's)
//   double                            double precision
//   std::string, std::string_view     text, varchar, bpchar, name
//   std::vector<std::uint8_t>,
//   std::span<const std::uint8_t>     bytea
//   Json, Jsonb                       json, jsonb
//   SystemTime                        timestamptz; cut to microseconds, from 1677 to 2262
//
// A decoded string_view or span points into the Result.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/async.hpp"

namespace todoke::pg {

using Oid = unsigned int;
using ByteView = std::span<const std::uint8_t>;

struct Json {
  std::string text;
  bool operator==(const Json&) const = default;
};
struct Jsonb {
  std::string text;
  bool operator==(const Jsonb&) const = default;
};

// The SQL name of a type that this file knows, "oid 12345" for others.
std::string type_name(Oid oid);

// Big-endian integers, as they stand in every message.
void append_int(std::string& out, std::uint64_t value, std::size_t bytes);
std::uint64_t read_int(ByteView& in, std::size_t bytes);

[[noreturn]] void throw_size_mismatch(Oid oid, std::size_t expected, std::size_t got);

template <class T>
struct Codec;

// `Type` and `Array` are the type's own OIDs; `Aliases` are further ones with the same binary form.
template <Oid Type, Oid Array, Oid... Aliases>
struct CodecOids {
  static constexpr Oid oid = Type;
  static constexpr Oid array_oid = Array;
  static constexpr bool accepts(Oid other) { return other == Type || ((other == Aliases) || ...); }
  static constexpr bool accepts_array(Oid other) { return other == Array; }
};

template <class T, Oid Type, Oid Array>
struct IntCodec : CodecOids<Type, Array> {
  static void encode(std::string& out, T value) {
    append_int(out, static_cast<std::uint64_t>(value), sizeof(T));
  }
  static T decode(ByteView in) {
    if (in.size() != sizeof(T)) throw_size_mismatch(Type, sizeof(T), in.size());
    return static_cast<T>(read_int(in, sizeof(T)));
  }
};

template <>
struct Codec<std::int16_t> : IntCodec<std::int16_t, 21, 1005> {};
template <>
struct Codec<std::int32_t> : IntCodec<std::int32_t, 23, 1007> {};
template <>
struct Codec<std::int64_t> : IntCodec<std::int64_t, 20, 1016> {};

template <>
struct Codec<bool> : CodecOids<16, 1000> {
  static void encode(std::string& out, bool value) { out.push_back(value ? '\1' : '\0'); }
  static bool decode(ByteView in);
};

template <>
struct Codec<double> : CodecOids<701, 1022> {
  static void encode(std::string& out, double value);
  static double decode(ByteView in);
};

template <>
struct Codec<std::string_view> : CodecOids<25, 1009, 1043, 1042, 19> {
  static constexpr bool accepts_array(Oid other) {
    return other == array_oid || other == 1015 || other == 1014 || other == 1003;
  }
  static void encode(std::string& out, std::string_view value) { out.append(value); }
  static std::string_view decode(ByteView in) {
    return {reinterpret_cast<const char*>(in.data()), in.size()};
  }
};

template <>
struct Codec<std::string> : Codec<std::string_view> {
  static std::string decode(ByteView in) { return std::string(Codec<std::string_view>::decode(in)); }
};

template <>
struct Codec<ByteView> : CodecOids<17, 1001> {
  static void encode(std::string& out, ByteView value) {
    out.append(reinterpret_cast<const char*>(value.data()), value.size());
  }
  static ByteView decode(ByteView in) { return in; }
};

template <>
struct Codec<std::vector<std::uint8_t>> : Codec<ByteView> {
  static std::vector<std::uint8_t> decode(ByteView in) { return {in.begin(), in.end()}; }
};

template <>
struct Codec<Json> : CodecOids<114, 199> {
  static void encode(std::string& out, const Json& value) { out.append(value.text); }
  static Json decode(ByteView in) { return {Codec<std::string>::decode(in)}; }
};

template <>
struct Codec<Jsonb> : CodecOids<3802, 3807> {
  static void encode(std::string& out, const Jsonb& value);
  static Jsonb decode(ByteView in);
};

template <>
struct Codec<SystemTime> : CodecOids<1184, 1185> {
  static void encode(std::string& out, SystemTime value);
  static SystemTime decode(ByteView in);
};

}  // namespace todoke::pg

#include "pg/codec.hpp"

#include <bit>
#include <chrono>

#include <fmt/format.h>

#include "pg/error.hpp"

namespace todoke::pg {

namespace {
using std::chrono::microseconds;

// Postgres counts from 2000-01-01 UTC.
constexpr microseconds kEpoch = std::chrono::seconds(946'684'800);
constexpr char kJsonbVersion = 1;

struct Named {
  Oid oid;
  std::string_view name;
};
constexpr Named kNames[] = {
    {16, "boolean"},      {17, "bytea"},       {19, "name"},          {20, "bigint"},
    {21, "smallint"},     {23, "integer"},     {25, "text"},          {26, "oid"},
    {114, "json"},        {199, "json[]"},     {700, "real"},         {701, "double"},
    {705, "unknown"},     {1000, "boolean[]"}, {1001, "bytea[]"},     {1003, "name[]"},
    {1005, "smallint[]"}, {1007, "integer[]"}, {1009, "text[]"},      {1014, "bpchar[]"},
    {1015, "varchar[]"},  {1016, "bigint[]"},  {1022, "double[]"},    {1042, "bpchar"},
    {1043, "varchar"},    {1114, "timestamp"}, {1184, "timestamptz"}, {1185, "timestamptz[]"},
    {1231, "numeric[]"},  {1700, "numeric"},   {2278, "void"},        {2950, "uuid"},
    {3802, "jsonb"},      {3807, "jsonb[]"},
};
}  // namespace

std::string type_name(Oid oid) {
  for (const auto& named : kNames) {
    if (named.oid == oid) return std::string(named.name);
  }
  return fmt::format("oid {}", oid);
}

void append_int(std::string& out, std::uint64_t value, std::size_t bytes) {
  for (auto shift = bytes * 8; shift > 0; shift -= 8) out.push_back(static_cast<char>(value >> (shift - 8)));
}

std::uint64_t read_int(ByteView& in, std::size_t bytes) {
  if (in.size() < bytes) throw TypeMismatch("a value from the server ends too early");
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value = (value << 8) | in[i];
  in = in.subspan(bytes);
  return value;
}

void throw_size_mismatch(Oid oid, std::size_t expected, std::size_t got) {
  throw TypeMismatch(
      fmt::format("a value of type {} has {} bytes instead of {}", type_name(oid), got, expected));
}

bool Codec<bool>::decode(ByteView in) {
  if (in.size() != 1) throw_size_mismatch(oid, 1, in.size());
  return in[0] != 0;
}

void Codec<double>::encode(std::string& out, double value) {
  append_int(out, std::bit_cast<std::uint64_t>(value), sizeof(value));
}

double Codec<double>::decode(ByteView in) {
  if (in.size() != sizeof(double)) throw_size_mismatch(oid, sizeof(double), in.size());
  return std::bit_cast<double>(read_int(in, sizeof(double)));
}

void Codec<Jsonb>::encode(std::string& out, const Jsonb& value) {
  out.push_back(kJsonbVersion);
  out.append(value.text);
}

Jsonb Codec<Jsonb>::decode(ByteView in) {
  if (read_int(in, 1) != kJsonbVersion) throw TypeMismatch("jsonb of an unknown version");
  return {Codec<std::string>::decode(in)};
}

void Codec<SystemTime>::encode(std::string& out, SystemTime value) {
  const auto since = std::chrono::floor<microseconds>(value.time_since_epoch()) - kEpoch;
  append_int(out, static_cast<std::uint64_t>(since.count()), sizeof(std::int64_t));
}

SystemTime Codec<SystemTime>::decode(ByteView in) {
  if (in.size() != sizeof(std::int64_t)) throw_size_mismatch(oid, sizeof(std::int64_t), in.size());
  const microseconds since(static_cast<std::int64_t>(read_int(in, sizeof(std::int64_t))));
  // Infinity and years that nanoseconds in 64 bits can't reach.
  constexpr auto least = std::chrono::ceil<microseconds>(SystemTime::min().time_since_epoch()) - kEpoch;
  constexpr auto most = std::chrono::floor<microseconds>(SystemTime::max().time_since_epoch()) - kEpoch;
  if (since < least || since > most)
    throw TypeMismatch("a timestamptz is infinite or outside of 1677 to 2262");
  return SystemTime(std::chrono::duration_cast<SystemTime::duration>(since + kEpoch));
}

}  // namespace todoke::pg

#include "pg/result.hpp"

#include <charconv>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>
#include <libpq-fe.h>

#include "pg/error.hpp"

namespace todoke::pg {

namespace {
constexpr std::uint64_t kNullFieldLength = 0xFFFF'FFFF;
}  // namespace

namespace detail {

void throw_type(Oid got, Oid asked) {
  throw TypeMismatch(fmt::format("has type {}, asked for {}", type_name(got), type_name(asked)));
}

void throw_null() {
  throw TypeMismatch("is NULL, asked for a value");
}

ArrayReader::ArrayReader(ByteView in) : rest(in) {
  const auto dimensions = read_int(rest, 4);
  read_int(rest, 4);  // whether there are NULLs: the elements tell
  element = static_cast<Oid>(read_int(rest, 4));
  if (dimensions == 0) return;
  if (dimensions != 1)
    throw TypeMismatch(fmt::format("is an array of {} dimensions, asked for one", dimensions));
  size = read_int(rest, 4);
  read_int(rest, 4);  // the lowest subscript
  // Each element takes 4 bytes at least: a size beyond that is not reserved for.
  if (size > rest.size() / 4) throw TypeMismatch("is an array that ends too early");
}

std::optional<ByteView> ArrayReader::next() {
  const auto length = read_int(rest, 4);
  if (length == kNullFieldLength) return std::nullopt;
  if (length > rest.size()) throw TypeMismatch("is an array that ends too early");
  const auto bytes = rest.first(length);
  rest = rest.subspan(length);
  return bytes;
}

}  // namespace detail

detail::Field Row::field(std::size_t column) const {
  const auto count = static_cast<std::size_t>(PQnfields(result_.get()));
  if (column >= count) throw TypeMismatch(fmt::format("column {} asked for, there are {}", column, count));
  const auto index = static_cast<int>(column);
  // libpq says so for a statement that was run over the simple protocol: its values are text.
  if (PQfformat(result_.get(), index) != 1)
    throw TypeMismatch(fmt::format("column {} is not in binary", column));
  const auto* data = reinterpret_cast<const std::uint8_t*>(PQgetvalue(result_.get(), row_, index));
  const auto length = static_cast<std::size_t>(PQgetlength(result_.get(), row_, index));
  return {PQftype(result_.get(), index), PQgetisnull(result_.get(), row_, index) == 1,
          ByteView(data, length)};
}

std::size_t Row::column_at(std::string_view name) const {
  const auto count = PQnfields(result_.get());
  for (int i = 0; i < count; ++i) {
    if (name == PQfname(result_.get(), i)) return static_cast<std::size_t>(i);
  }
  throw TypeMismatch(fmt::format("no column is named {}", name));
}

void Row::throw_in_column(std::size_t column, const TypeMismatch& mismatch) const {
  throw TypeMismatch(fmt::format("column {} ({}) {}", column,
                                 PQfname(result_.get(), static_cast<int>(column)), mismatch.what()));
}

std::size_t Result::size() const {
  return result_ ? static_cast<std::size_t>(PQntuples(result_.get())) : 0;
}

Row Result::operator[](std::size_t row) const {
  if (row >= size()) throw std::out_of_range(fmt::format("row {} asked for, there are {}", row, size()));
  return {result_, static_cast<int>(row)};
}

Row Result::one() const {
  if (size() != 1) throw TypeMismatch(fmt::format("one row expected, there are {}", size()));
  return (*this)[0];
}

// libpq's functions for the tag take a result that is not const although they don't change it.
std::int64_t Result::affected() const {
  if (!result_) return 0;
  const char* text = PQcmdTuples(const_cast<PGresult*>(result_.get()));
  std::int64_t count = 0;
  std::from_chars(text, text + std::strlen(text), count);
  return count;
}

std::string_view Result::tag() const {
  return result_ ? PQcmdStatus(const_cast<PGresult*>(result_.get())) : std::string_view();
}

}  // namespace todoke::pg

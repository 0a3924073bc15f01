// What a statement returned. Values are decoded when they are asked for: row.get<std::int64_t>(0),
// row.get<std::string>("name"), row.get<std::optional<double>>(2),
// row.get<std::vector<std::optional<std::string>>>("tags"). A NULL in a type that has none, a column of
// another type and an unknown column throw TypeMismatch, with the column's name. Copies share the memory,
// rows keep it alive. string_view and span point into it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "pg/codec.hpp"
#include "pg/error.hpp"
#include "pg/params.hpp"

struct pg_result;

namespace todoke::pg {

namespace detail {

struct Field {
  Oid oid;
  bool null;
  ByteView bytes;
};

[[noreturn]] void throw_type(Oid got, Oid asked);
[[noreturn]] void throw_null();

struct ArrayReader {
  // Reads the header of an array; more than one dimension is refused.
  explicit ArrayReader(ByteView in);
  // The next element; nothing for NULL.
  std::optional<ByteView> next();
  Oid element = 0;
  std::size_t size = 0;
  ByteView rest;
};

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::bool_constant<!std::same_as<T, std::uint8_t>> {};

template <class T>
T decode_element(std::optional<ByteView> bytes) {
  if constexpr (IsOptional<T>::value) {
    if (!bytes) return std::nullopt;
    return Codec<typename T::value_type>::decode(*bytes);
  } else {
    if (!bytes) throw_null();
    return Codec<T>::decode(*bytes);
  }
}

template <class T>
struct ScalarOf {
  using type = T;
};
template <class T>
struct ScalarOf<std::optional<T>> {
  using type = T;
};

template <class T>
T decode_field(const Field& field) {
  if constexpr (IsOptional<T>::value) {
    if (field.null) return std::nullopt;
    return decode_field<typename T::value_type>(field);
  } else if constexpr (IsVector<T>::value) {
    using Element = typename T::value_type;
    using Coded = Codec<typename ScalarOf<Element>::type>;
    if (!Coded::accepts_array(field.oid)) throw_type(field.oid, Coded::array_oid);
    if (field.null) throw_null();
    ArrayReader reader(field.bytes);
    if (!Coded::accepts(reader.element)) throw_type(field.oid, Coded::array_oid);
    T list;
    list.reserve(reader.size);
    for (std::size_t i = 0; i < reader.size; ++i) list.push_back(decode_element<Element>(reader.next()));
    return list;
  } else {
    if (!Codec<T>::accepts(field.oid)) throw_type(field.oid, Codec<T>::oid);
    if (field.null) throw_null();
    return Codec<T>::decode(field.bytes);
  }
}

}  // namespace detail

class Row {
 public:
  Row(std::shared_ptr<const pg_result> result, int row) : result_(std::move(result)), row_(row) {}

  template <class T>
  [[nodiscard]] T get(std::size_t column) const {
    const auto value = field(column);
    try {
      return detail::decode_field<T>(value);
    } catch (const TypeMismatch& mismatch) {
      throw_in_column(column, mismatch);
    }
  }
  template <class T>
  [[nodiscard]] T get(std::string_view column) const {
    return get<T>(column_at(column));
  }
  [[nodiscard]] bool is_null(std::size_t column) const { return field(column).null; }

 private:
  [[nodiscard]] detail::Field field(std::size_t column) const;
  [[nodiscard]] std::size_t column_at(std::string_view name) const;
  [[noreturn]] void throw_in_column(std::size_t column, const TypeMismatch& mismatch) const;

  std::shared_ptr<const pg_result> result_;
  int row_;
};

class Result {
 public:
  Result() = default;
  explicit Result(std::shared_ptr<const pg_result> result) : result_(std::move(result)) {}

  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] Row operator[](std::size_t row) const;
  // The only row; throws TypeMismatch when there is another number of rows.
  [[nodiscard]] Row one() const;
  // How many rows INSERT, UPDATE, DELETE, MERGE or COPY changed, or SELECT returned; 0 for other statements.
  [[nodiscard]] std::int64_t affected() const;
  // The command that was run: "INSERT 0 3".
  [[nodiscard]] std::string_view tag() const;

  class Iterator {
   public:
    using value_type = Row;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    Iterator(const Result* result, std::size_t row) : result_(result), row_(row) {}
    Row operator*() const { return (*result_)[row_]; }
    Iterator& operator++() {
      ++row_;
      return *this;
    }
    Iterator operator++(int) { return {result_, row_++}; }
    bool operator==(const Iterator& other) const { return row_ == other.row_; }

   private:
    const Result* result_ = nullptr;
    std::size_t row_ = 0;
  };
  [[nodiscard]] Iterator begin() const { return {this, 0}; }
  [[nodiscard]] Iterator end() const { return {this, size()}; }

 private:
  std::shared_ptr<const pg_result> result_;
};

}  // namespace todoke::pg

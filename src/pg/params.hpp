// The parameters $1, $2 … of a statement, in binary, with their types.
//
//   conn.query(sql::kClaim, {topic_id, "name", std::optional<std::int64_t>(), std::span(ids)}, deadline)
//
// Takes the types of codec.hpp, std::optional of them (NULL), and vectors, arrays and spans of either
// (one-dimensional arrays, with NULL elements); bytes in a vector, array or span are bytea. Unsigned numbers
// are left out on purpose: SQL has none. Every value is copied once. Text is passed on as it is: the server
// refuses U+0000 and what is no UTF-8.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "pg/codec.hpp"

namespace todoke::pg {

namespace detail {

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <class T>
concept BytesLike =
    std::convertible_to<const T&, ByteView> && !std::convertible_to<const T&, std::string_view>;

template <class T>
concept TextLike = std::convertible_to<const T&, std::string_view>;

template <class T>
concept ListLike = !BytesLike<T> && !TextLike<T> && requires(const T& list) {
  list.begin();
  list.end();
  list.size();
};

// The type whose Codec encodes a T.
template <class T>
struct WireOf {
  using type = T;
};
template <TextLike T>
struct WireOf<T> {
  using type = std::string_view;
};
template <BytesLike T>
struct WireOf<T> {
  using type = ByteView;
};
// `long long` is another type than std::int64_t (`long`) but the same number.
template <>
struct WireOf<long long> {
  using type = std::int64_t;
};
template <class T>
struct WireOf<std::optional<T>> : WireOf<T> {};
template <class T>
using Wire = typename WireOf<T>::type;

}  // namespace detail

class Params {
 public:
  Params() = default;
  template <class... T>
    requires(sizeof...(T) > 0 && (!std::same_as<std::remove_cvref_t<T>, Params> && ...))
  Params(const T&... values) {
    (add(values), ...);
  }

  template <class T>
  Params& add(const T& value) {
    if constexpr (detail::IsOptional<T>::value) {
      if (value) return add(*value);
      return add_null<typename T::value_type>();
    } else if constexpr (detail::ListLike<T>) {
      using Element = std::remove_cvref_t<decltype(*value.begin())>;
      // std::vector<bool> gives proxies.
      if constexpr (std::same_as<T, std::vector<bool>>) {
        return add_array<bool>(value);
      } else {
        return add_array<Element>(value);
      }
    } else {
      using Wire = detail::Wire<T>;
      begin(Codec<Wire>::oid);
      Codec<Wire>::encode(bytes_, static_cast<const Wire&>(value));
      return end();
    }
  }

  struct Value {
    Oid oid;
    bool null;
    std::size_t at;
    std::size_t length;
  };
  [[nodiscard]] std::size_t size() const { return values_.size(); }
  [[nodiscard]] const std::vector<Value>& values() const { return values_; }
  [[nodiscard]] const char* data(const Value& value) const {
    return value.null ? nullptr : bytes_.data() + value.at;
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_.size(); }

 private:
  template <class T>
  Params& add_null() {
    if constexpr (detail::ListLike<T>) {
      using Element = std::remove_cvref_t<typename T::value_type>;
      return add_null_of(Codec<detail::Wire<Element>>::array_oid);
    } else {
      return add_null_of(Codec<detail::Wire<T>>::oid);
    }
  }

  template <class Element, class List>
  Params& add_array(const List& list) {
    using Coded = Codec<detail::Wire<Element>>;
    begin(Coded::array_oid);
    const auto has_null_at = array_header(Coded::oid, list.size());
    for (const auto& element : list) {
      if constexpr (detail::IsOptional<Element>::value) {
        if (!element) {
          array_null(has_null_at);
          continue;
        }
      }
      const auto at = begin_element();
      if constexpr (detail::IsOptional<Element>::value) {
        Coded::encode(bytes_, static_cast<const detail::Wire<Element>&>(*element));
      } else if constexpr (std::same_as<Element, bool>) {
        Coded::encode(bytes_, static_cast<bool>(element));
      } else {
        Coded::encode(bytes_, static_cast<const detail::Wire<Element>&>(element));
      }
      end_element(at);
    }
    return end();
  }

  Params& add_null_of(Oid oid);
  void begin(Oid oid);
  Params& end();
  std::size_t array_header(Oid element, std::size_t size);
  void array_null(std::size_t has_null_at);
  std::size_t begin_element();
  void end_element(std::size_t at);

  std::vector<Value> values_;
  std::string bytes_;
};

}  // namespace todoke::pg

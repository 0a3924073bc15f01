// Fields of a JSON object, taken out one by one and checked.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/json_value.hpp"
#include "orders/core/decimal.hpp"

namespace todoke::orders {

// Takes fields out of a JSON object and keeps the first offence. Values read after an offence don't matter,
// so a caller reads all fields and checks once.
class JsonFields {
 public:
  // `path` is where the object stands in its document; empty: it is the document.
  JsonFields(const JsonValue& object, std::string_view path) : object_(object), path_(path) {}

  void refuse_unknown(std::span<const std::string_view> known);
  void require(std::string_view name);

  // Each gives nothing for a member that is absent, null, or something else (an offence). Text is in NFC.
  std::optional<std::string> text(std::string_view name, std::size_t characters_max);
  std::optional<Decimal> number(std::string_view name);
  const JsonValue* of_kind(std::string_view name, JsonValue::Kind kind);

  void offend(std::string_view name, std::string_view message);
  void offend(BadField offence);
  std::optional<BadField>& offence() { return offence_; }

 private:
  const JsonValue& object_;
  std::string path_;
  std::optional<BadField> offence_;
};

// "must be a number" and the like.
std::string_view must_be(JsonValue::Kind kind);

}  // namespace todoke::orders

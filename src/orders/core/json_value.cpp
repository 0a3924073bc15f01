#include "orders/core/json_value.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/utf8.hpp"
#include "orders/core/text.hpp"

namespace todoke::orders {
std::string_view must_be(JsonValue::Kind kind) {
  switch (kind) {
    case JsonValue::Kind::null:
      return "must be null";
    case JsonValue::Kind::boolean:
      return "must be true or false";
    case JsonValue::Kind::number:
      return "must be a number";
    case JsonValue::Kind::string:
      return "must be a string";
    case JsonValue::Kind::array:
      return "must be an array";
    case JsonValue::Kind::object:
      return "must be an object";
  }
  return "is of the wrong kind";
}

void JsonFields::refuse_unknown(std::span<const std::string_view> known) {
  for (const auto& name : object_.names) {
    if (std::find(known.begin(), known.end(), name) == known.end()) offend(name, "is unknown");
  }
}

void JsonFields::require(std::string_view name) {
  if (object_.member(name) == nullptr) offend(name, "is required");
}

std::optional<std::string> JsonFields::text(std::string_view name, std::size_t characters_max) {
  const auto* value = of_kind(name, JsonValue::Kind::string);
  if (value == nullptr) return std::nullopt;
  auto normal = to_nfc(value->text);
  if (count_characters(normal) > characters_max) {
    offend(name, fmt::format("has more than {} characters", characters_max));
  }
  return normal;
}

std::optional<Decimal> JsonFields::number(std::string_view name) {
  const auto* value = of_kind(name, JsonValue::Kind::number);
  if (value == nullptr) return std::nullopt;
  auto parsed = Decimal::parse(value->text);
  if (parsed) return std::move(*parsed);
  offend(name, parsed.error().message);
  return std::nullopt;
}

const JsonValue* JsonFields::of_kind(std::string_view name, JsonValue::Kind kind) {
  const auto* value = object_.member(name);
  if (value == nullptr || value->is(kind)) return value;
  offend(name, must_be(kind));
  return nullptr;
}

void JsonFields::offend(std::string_view name, std::string_view message) {
  if (!offence_) offence_ = BadField{path_of(path_, name), std::string(message)};
}

void JsonFields::offend(BadField offence) {
  if (!offence_) offence_ = std::move(offence);
}

}  // namespace todoke::orders

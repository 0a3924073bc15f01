#include "harness/json_answers.hpp"

#include <stdexcept>

#include <fmt/format.h>

#include "base/json_value.hpp"
#include "base/text.hpp"

namespace todoke::test {
namespace {

using Kind = JsonValue::Kind;

const JsonValue* part_of(const JsonValue& value, std::string_view name) {
  if (!value.is(Kind::array)) return value.member(name);
  const auto index = parse_number<std::uint32_t>(name);
  return index && *index < value.values.size() ? &value.values[*index] : nullptr;
}

std::string text_of(const JsonValue& value) {
  if (value.is(Kind::boolean)) return value.flag ? "true" : "false";
  if (value.is(Kind::array) || value.is(Kind::object)) return json_of(value);
  return value.text;
}

}  // namespace

std::string member(const std::string& json, std::string_view path) {
  const auto document = read_json(json);
  if (!document) throw std::runtime_error("no JSON: " + json);
  const auto* value = &*document;
  while (value != nullptr && !path.empty()) value = part_of(*value, cut_until(path, '.'));
  return value == nullptr ? "null" : text_of(*value);
}

std::string code(const net::test::RawResponse& response) {
  return fmt::format("{} {}", response.status, member(response.body, "code"));
}

}  // namespace todoke::test

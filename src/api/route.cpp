#include "api/route.hpp"

#include <algorithm>
#include <stdexcept>

#include "base/text.hpp"

namespace todoke::api {
namespace {

const JsonValue* parameter_of(const Call& call, std::string_view name) {
  const auto found = std::find_if(call.parameters.begin(), call.parameters.end(),
                                  [name](const auto& parameter) { return parameter.first == name; });
  return found == call.parameters.end() ? nullptr : &found->second;
}

}  // namespace

const std::string& Call::text(std::string_view parameter) const {
  const auto* value = parameter_of(*this, parameter);
  if (value == nullptr) throw std::logic_error("no parameter " + std::string(parameter));
  return value->text;
}

std::optional<std::string> Call::text_if(std::string_view parameter) const {
  const auto* value = parameter_of(*this, parameter);
  return value == nullptr ? std::nullopt : std::optional(value->text);
}

std::int64_t Call::integer_or(std::string_view parameter, std::int64_t fallback) const {
  const auto* value = parameter_of(*this, parameter);
  return value == nullptr ? fallback : parse_number<std::int64_t>(value->text).value();
}

std::optional<std::string> Call::body_text(std::string_view member) const {
  const auto* value = body.member(member);
  return value == nullptr ? std::nullopt : std::optional(value->text);
}

std::vector<std::string> Call::body_texts(std::string_view member) const {
  std::vector<std::string> texts;
  if (const auto* list = body.member(member); list != nullptr) {
    for (const auto& value : list->values) texts.push_back(value.text);
  }
  return texts;
}

Parameter in_path(std::string_view name, Schema schema) {
  return {name, In::path, std::move(schema), Needed::always};
}

Parameter in_query(std::string_view name, Schema schema, Needed needed) {
  return {name, In::query, std::move(schema), needed};
}

}  // namespace todoke::api

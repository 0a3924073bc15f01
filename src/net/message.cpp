#include "net/message.hpp"

#include <algorithm>

#include "base/json_writer.hpp"
#include "base/text.hpp"

namespace todoke::net {

void Headers::set(std::string_view name, std::string_view value) {
  std::erase_if(fields_, [&](const auto& field) { return same_ignoring_case(field.first, name); });
  add(name, value);
}

std::string_view Headers::get(std::string_view name) const {
  for (const auto& [field, value] : fields_) {
    if (same_ignoring_case(field, name)) return value;
  }
  return {};
}

bool Headers::has(std::string_view name) const {
  return std::any_of(fields_.begin(), fields_.end(),
                     [&](const auto& field) { return same_ignoring_case(field.first, name); });
}

std::string Headers::joined(std::string_view name) const {
  std::string result;
  bool first = true;
  for (const auto& [field, value] : fields_) {
    if (!same_ignoring_case(field, name)) continue;
    if (!first) result += ", ";
    first = false;
    result += value;
  }
  return result;
}

std::optional<std::string_view> Request::query_value(std::string_view name) const {
  for (const auto& [key, value] : query) {
    if (key == name) return value;
  }
  return std::nullopt;
}

Response text_response(int status, std::string body, std::string_view content_type) {
  Response response;
  response.status = status;
  response.headers.add("Content-Type", content_type);
  response.body = std::move(body);
  return response;
}

Response json_response(int status, std::string json) {
  return text_response(status, std::move(json), "application/json");
}

Response error_response(int status, std::string_view code, std::string_view message,
                        std::string_view details) {
  JsonWriter json;
  json.begin_object().member("code", code).member("message", message);
  json.key("details").raw(details.empty() ? std::string_view("{}") : details).end_object();
  return json_response(status, std::move(json).text());
}

}  // namespace todoke::net

#include "users/json_parts.hpp"

#include "base/timestamp.hpp"

namespace todoke::users {

api::Parameter limit_parameter() {
  return api::in_query("limit", api::integer_from(1, kPageMax, "How many entries; 50 unless given."));
}

api::Parameter cursor_parameter() {
  return api::in_query("cursor", api::formatted(api::kCursor, "next_cursor of the page before."));
}

api::Schema page_of(api::Schema entry, std::string_view meaning) {
  return api::object_of({{"items", api::list_of(std::move(entry), kPageMax, meaning)},
                         {"next_cursor", api::nullable(api::text_up_to(
                                             512, "Where the next page begins; null: that was all."))}});
}

void write_next_cursor(JsonWriter& json, std::string_view cursor) {
  json.key("next_cursor");
  if (cursor.empty()) {
    json.null();
  } else {
    json.value(cursor);
  }
}

void write_or_null(JsonWriter& json, std::string_view name, const std::optional<std::string>& text) {
  json.key(name);
  if (text) {
    json.value(*text);
  } else {
    json.null();
  }
}

void write_or_null(JsonWriter& json, std::string_view name, const std::optional<SystemTime>& time) {
  write_or_null(json, name, time ? std::optional(format_timestamp(*time)) : std::nullopt);
}

}  // namespace todoke::users

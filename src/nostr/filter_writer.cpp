#include "nostr/filter_writer.hpp"

#include "base/json_writer.hpp"

namespace todoke::nostr {
namespace {

template <class T>
void write_hexes(JsonWriter& json, std::string_view name, const std::optional<SortedSet<T>>& values) {
  if (!values) return;
  json.key(name).begin_array();
  for (const auto& value : values->values()) json.value(value.hex());
  json.end_array();
}

template <class T>
void write_number(JsonWriter& json, std::string_view name, const std::optional<T>& number) {
  if (number) json.member(name, *number);
}

}  // namespace

std::string filter_json(const Filter& filter) {
  JsonWriter json;
  json.begin_object();
  write_hexes(json, "ids", filter.ids);
  write_hexes(json, "authors", filter.authors);
  if (filter.kinds) {
    json.key("kinds").begin_array();
    for (const auto kind : filter.kinds->values()) json.value(kind);
    json.end_array();
  }
  for (const auto& tag : filter.tags) {
    json.key(std::string{'#', tag.letter}).begin_array();
    for (const auto& value : tag.values.values()) json.value(value);
    json.end_array();
  }
  write_number(json, "since", filter.since);
  write_number(json, "until", filter.until);
  write_number(json, "limit", filter.limit);
  if (filter.seq_after) json.member("seq_after", filter.seq_after->value);
  if (filter.search) json.member("search", *filter.search);
  json.end_object();
  return std::move(json).text();
}

}  // namespace todoke::nostr

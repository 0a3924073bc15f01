#include "index/search_cursor.hpp"

#include <array>

#include <fmt/format.h>

#include "base/text.hpp"
#include "nostr/ids.hpp"

namespace todoke::index {
namespace {

constexpr std::string_view kVersion = "1";
constexpr std::size_t kFields = 8;  // version, as_of, and a number and an id three times
using Fields = std::array<std::string_view, kFields>;

std::optional<Fields> split(std::string_view text) {
  Fields fields;
  for (std::size_t i = 0; i < kFields; ++i) {
    const auto end = i + 1 < kFields ? text.find('.') : text.size();
    if (end == std::string_view::npos) return std::nullopt;
    fields[i] = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return fields;
}

bool is_id(std::string_view text) {
  return text.empty() || nostr::EventId::from_hex(text).has_value();
}

// Both fields empty: nothing. False: not right.
template <class T>
bool read(std::string_view first, std::string_view id, std::optional<T>& out) {
  if (first.empty() && id.empty()) return true;
  const auto value = parse_number<std::int64_t>(first);
  if (!value || !is_id(id)) return false;
  out = T{*value, std::string(id)};
  return true;
}

}  // namespace

std::string to_text(const SearchCursor& cursor) {
  auto text = fmt::format("{}.{}", kVersion, cursor.as_of);
  const auto add = [&text](const auto& pair, auto member) {
    text += pair ? fmt::format(".{}.{}", (*pair).*member, pair->event_id) : "..";
  };
  add(cursor.ceiling, &Place::created_at);
  add(cursor.floor, &Place::created_at);
  add(cursor.last, &LastHit::rank);
  return text;
}

std::optional<SearchCursor> parse_cursor(std::string_view text) {
  const auto fields = split(text);
  if (!fields || (*fields)[0] != kVersion) return std::nullopt;
  const auto as_of = parse_number<std::int64_t>((*fields)[1]);
  if (!as_of || *as_of < 0) return std::nullopt;
  SearchCursor cursor;
  cursor.as_of = *as_of;
  if (!read((*fields)[2], (*fields)[3], cursor.ceiling) || !read((*fields)[4], (*fields)[5], cursor.floor) ||
      !read((*fields)[6], (*fields)[7], cursor.last)) {
    return std::nullopt;
  }
  return cursor;
}

}  // namespace todoke::index

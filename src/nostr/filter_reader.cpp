#include "nostr/filter_reader.hpp"

#include <algorithm>
#include <limits>

#include "nostr/event_parse.hpp"

namespace todoke::nostr {
namespace {

using Refused = std::optional<Reason>;

// Calls `take` for each element until it refuses.
template <class Take>
Refused read_list(od::value& value, std::size_t values_max, Reason no_list, Take take) {
  od::array list;
  if (value.get_array().get(list) != simdjson::SUCCESS) return no_list;
  std::size_t count = 0;
  for (auto element : list) {
    od::value item;
    if (std::move(element).get(item) != simdjson::SUCCESS) return no_list;
    if (count++ == values_max) return Reason::filter_too_many_values;
    if (!take(item)) return no_list;
  }
  return std::nullopt;
}

template <class Hex>
Refused read_hex_list(od::value& value, std::size_t values_max, Reason bad,
                      std::optional<SortedSet<Hex>>& out) {
  std::vector<Hex> values;
  const auto refused = read_list(value, values_max, bad, [&](od::value& item) {
    const auto string = read_string(item);
    const auto parsed = string ? Hex::from_hex(string->text) : std::nullopt;
    if (parsed) values.push_back(*parsed);
    return parsed.has_value();
  });
  if (!refused) out.emplace(std::move(values));
  return refused;
}

Refused read_kinds(od::value& value, std::size_t values_max, std::optional<SortedSet<Kind>>& out) {
  std::vector<Kind> kinds;
  const auto refused = read_list(value, values_max, Reason::filter_bad_kinds, [&](od::value& item) {
    const auto kind = read_integer(item);
    if (!kind || *kind < 0 || *kind > std::numeric_limits<Kind>::max()) return false;
    kinds.push_back(static_cast<Kind>(*kind));
    return true;
  });
  if (!refused) out.emplace(std::move(kinds));
  return refused;
}

Refused read_tag_values(od::value& value, char letter, const FilterLimits& limits, Filter& filter) {
  if (filter.tag(letter) != nullptr) return Reason::filter_duplicate_key;
  if (filter.tags.size() == limits.tags_max) return Reason::filter_too_many_tags;
  auto bad = Reason::filter_bad_tag_values;
  if (letter == 'e') bad = Reason::filter_bad_event_tag;
  if (letter == 'p') bad = Reason::filter_bad_pubkey_tag;
  const bool hex = letter == 'e' || letter == 'p';
  std::vector<std::string> values;
  const auto refused = read_list(value, limits.values_max, bad, [&](od::value& item) {
    const auto string = read_string(item);
    if (!string || string->form == EscapeForm::lone_surrogate) return false;
    if (hex && !EventId::from_hex(string->text)) return false;
    values.emplace_back(string->text);
    return true;
  });
  if (!refused) filter.tags.push_back({letter, SortedSet(std::move(values))});
  return refused;
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

Refused read_time(od::value& value, Reason bad, std::optional<std::int64_t>& out) {
  out = read_integer(value);
  return out ? std::nullopt : std::optional(bad);
}

Refused read_limit(od::value& value, Filter& filter) {
  const auto limit = read_integer(value);
  if (!limit || *limit < 0) return Reason::filter_bad_limit;
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  filter.limit = static_cast<std::uint32_t>(std::min(*limit, kMost));
  return std::nullopt;
}

Refused read_seq_after(od::value& value, Filter& filter) {
  const auto seq = read_integer(value);
  if (!seq || *seq < 0) return Reason::filter_bad_seq_after;
  filter.seq_after = Seq{*seq};
  return std::nullopt;
}

Refused read_search(od::value& value, Filter& filter) {
  const auto string = read_string(value);
  if (!string || string->form == EscapeForm::lone_surrogate) return Reason::filter_bad_search;
  filter.search.emplace(string->text);
  return std::nullopt;
}

Refused read_member(std::string_view key, od::value& value, const FilterLimits& limits, Filter& filter) {
  if (key.size() == 2 && key[0] == '#' && is_letter(key[1])) {
    return read_tag_values(value, key[1], limits, filter);
  }
  const auto once = [](const auto& member, auto read) -> Refused {
    if (member) return Reason::filter_duplicate_key;
    return read();
  };
  const auto most = limits.values_max;
  if (key == "ids") {
    return once(filter.ids, [&] { return read_hex_list(value, most, Reason::filter_bad_ids, filter.ids); });
  }
  if (key == "authors") {
    return once(filter.authors,
                [&] { return read_hex_list(value, most, Reason::filter_bad_authors, filter.authors); });
  }
  if (key == "kinds") return once(filter.kinds, [&] { return read_kinds(value, most, filter.kinds); });
  if (key == "since") {
    return once(filter.since, [&] { return read_time(value, Reason::filter_bad_since, filter.since); });
  }
  if (key == "until") {
    return once(filter.until, [&] { return read_time(value, Reason::filter_bad_until, filter.until); });
  }
  if (key == "limit") return once(filter.limit, [&] { return read_limit(value, filter); });
  if (key == "seq_after") return once(filter.seq_after, [&] { return read_seq_after(value, filter); });
  if (key == "search") return once(filter.search, [&] { return read_search(value, filter); });
  return Reason::filter_unknown_key;
}

}  // namespace

tl::expected<Filter, Reason> read_filter(od::object object, const FilterLimits& limits) {
  Filter filter;
  for (auto member : object) {
    od::field field;
    std::string_view key;
    if (std::move(member).get(field) != simdjson::SUCCESS) return tl::unexpected(Reason::filter_not_object);
    if (field.unescaped_key().get(key) != simdjson::SUCCESS) {
      return tl::unexpected(Reason::filter_unknown_key);
    }
    const auto refused = read_member(key, field.value(), limits, filter);
    if (refused) return tl::unexpected(*refused);
  }
  std::sort(filter.tags.begin(), filter.tags.end(),
            [](const TagFilter& a, const TagFilter& b) { return a.letter < b.letter; });
  return filter;
}

tl::expected<Filter, Reason> parse_filter(std::string_view text, const FilterLimits& limits) {
  auto read = [&]() -> tl::expected<Filter, Reason> {
    od::document document;
    od::object object;
    if (thread_reader().read(text).get(document) != simdjson::SUCCESS ||
        document.get_object().get(object) != simdjson::SUCCESS) {
      return tl::unexpected(Reason::filter_not_object);
    }
    auto filter = read_filter(object, limits);
    if (filter && !at_end(document)) return tl::unexpected(Reason::message_not_json);
    return filter;
  }();
  if (read) return read;
  switch (check_json(text, kJsonDepthMax)) {
    case JsonCheck::good:
      return read;
    case JsonCheck::too_deep:
      return tl::unexpected(Reason::message_too_deep);
    case JsonCheck::not_json:
      break;
  }
  return tl::unexpected(Reason::message_not_json);
}

}  // namespace todoke::nostr

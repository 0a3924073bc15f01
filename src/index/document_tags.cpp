#include "index/document_tags.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <simdjson.h>

#include "base/sha256.hpp"

namespace todoke::index {
namespace {

namespace dom = simdjson::dom;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

void add_tag(DocumentTags& tags, std::string_view name, std::string_view value) {
  if (name == "title" && !tags.title) tags.title = value;
  if (name == "summary" && !tags.summary) tags.summary = value;
  if (name == "scope" && value != "public") tags.scoped = true;
  if (name.size() == 1 && is_letter(name[0])) tags.numbers.push_back(tag_number(name[0], value));
}

}  // namespace

std::int64_t tag_number(char letter, std::string_view value) {
  const auto hash = sha256({{&letter, 1}, value});
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < sizeof(number); ++i) number = number << 8U | hash[i];
  return static_cast<std::int64_t>(number);
}

DocumentTags read_document_tags(std::string_view tags_json) {
  // One for each thread: making one costs more than the tags of an event.
  thread_local dom::parser parser;
  DocumentTags tags;
  dom::array list;
  if (parser.parse(tags_json.data(), tags_json.size()).get(list) != simdjson::SUCCESS) return tags;
  for (const auto tag : list) {
    dom::array values;
    if (tag.get(values) != simdjson::SUCCESS || values.size() < 2) continue;
    std::string_view name;
    std::string_view value;
    if (values.at(0).get(name) != simdjson::SUCCESS || values.at(1).get(value) != simdjson::SUCCESS) continue;
    add_tag(tags, name, value);
  }
  std::sort(tags.numbers.begin(), tags.numbers.end());
  tags.numbers.erase(std::unique(tags.numbers.begin(), tags.numbers.end()), tags.numbers.end());
  return tags;
}

// An escaped name would be missed: the relay stores tags in canonical form, and no letter is escaped there.
bool may_have_tag(std::string_view tags_json, std::string_view name) {
  return tags_json.find(fmt::format("\"{}\"", name)) != std::string_view::npos;
}

}  // namespace todoke::index

// Inside this room: what the index keeps of an event's tags.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace todoke::index {

// A tag of one letter as a number: the beginning of the SHA-256 of letter and value. It has one size whatever
// the value is, an eighth of the ids that most tags hold. Tags that differ share a number by chance only (one
// pair in 2^64), so a caller that asks by number compares what it found with the event itself.
std::int64_t tag_number(char letter, std::string_view value);

struct DocumentTags {
  std::optional<std::string> title;  // the first of each
  std::optional<std::string> summary;
  bool scoped = false;                // a `scope` that is not public
  std::vector<std::int64_t> numbers;  // of every tag that a filter can ask for, ascending, each once
};

// From a list of lists of strings, as it is stored. Reads a text that is no such list as far as it is one:
// the relay has checked it, and a row that was written by hand must not stop the log.
DocumentTags read_document_tags(std::string_view tags_json);

// Whether reading is worth the trouble: no tag can have this name otherwise.
bool may_have_tag(std::string_view tags_json, std::string_view name);

}  // namespace todoke::index

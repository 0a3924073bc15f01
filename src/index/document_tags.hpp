// Inside this room: the few tags that the index reads.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace todoke::index {

struct DocumentTags {
  std::optional<std::string> title;  // the first of each
  std::optional<std::string> summary;
  bool scoped = false;  // a `scope` that is not public
};

// From a list of lists of strings, as it is stored. What is no such list reads as far as it is one: the relay
// has checked it, and a stranger's row must not stop the log.
DocumentTags read_document_tags(std::string_view tags_json);

// Whether reading is worth the trouble: no tag can have this name otherwise.
bool may_have_tag(std::string_view tags_json, std::string_view name);

}  // namespace todoke::index

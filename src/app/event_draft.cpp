#include "app/event_draft.hpp"

#include <fmt/format.h>

#include "base/json_value.hpp"

namespace todoke::app {
namespace {

constexpr std::int64_t kKindMax = 65'535;

std::vector<std::string> strings_of(const JsonValue& tag, const std::string& text) {
  std::vector<std::string> strings;
  for (const auto& value : tag.values) {
    if (!value.is(JsonValue::Kind::string)) throw UsageError(fmt::format("--tag {}: strings only", text));
    strings.push_back(value.text);
  }
  if (strings.empty()) throw UsageError(fmt::format("--tag {}: an empty tag", text));
  return strings;
}

}  // namespace

std::vector<std::string> parse_tag(const std::string& text) {
  if (text.starts_with('[')) {
    const auto tag = read_json(text);
    if (!tag) throw UsageError(fmt::format("--tag {}: {}", text, tag.error().message));
    return strings_of(*tag, text);
  }
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw UsageError(fmt::format("--tag {}: say name=value or a JSON array of strings", text));
  return {text.substr(0, equals), text.substr(equals + 1)};
}

nostr::EventDraft draft_from(const Arguments& arguments) {
  nostr::EventDraft draft;
  const auto time = time_option(arguments, "created-at").value_or(std::chrono::system_clock::now());
  draft.created_at = seconds_of(time).time_since_epoch().count();
  draft.kind = static_cast<nostr::Kind>(number_option(arguments, "kind", 0, kKindMax).value_or(1));
  draft.content = arguments.option("content").value_or("");
  for (const auto& tag : arguments.all("tag")) draft.tags.push_back(parse_tag(tag));
  return draft;
}

}  // namespace todoke::app

// An event as the options of `todoke publish` describe it.
#pragma once

#include <string>
#include <vector>

#include "app/command.hpp"
#include "nostr/signature.hpp"

namespace todoke::app {

// `name=value`, or a JSON array of strings. Throws UsageError.
std::vector<std::string> parse_tag(const std::string& text);

// --kind, --content, --tag and --created-at. Throws UsageError.
nostr::EventDraft draft_from(const Arguments& arguments);

}  // namespace todoke::app

// Inside this room: reads a filter out of a larger document.
#pragma once

#include "base/json_read.hpp"
#include "nostr/filter.hpp"

namespace todoke::nostr {

// Reads the object to its end. A refusal may also mean that the text is no JSON: check_json tells.
tl::expected<Filter, Reason> read_filter(od::object object, const FilterLimits& limits);

}  // namespace todoke::nostr

// A filter as JSON, to be sent to a relay. Reading it again gives an equal one.
#pragma once

#include <string>

#include "nostr/filter.hpp"

namespace todoke::nostr {

std::string filter_json(const Filter& filter);

}  // namespace todoke::nostr

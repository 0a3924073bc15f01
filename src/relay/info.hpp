// The relay's information document (NIP-11): what it is, what it supports, and its limits as they are
// enforced at the given time.
#pragma once

#include <string>

#include "base/clock.hpp"
#include "base/config.hpp"

namespace todoke::relay {

std::string information_document(const Config& config, std::string_view version, SystemTime now);

}  // namespace todoke::relay

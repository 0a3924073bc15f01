// The relay's information document (NIP-11): what it is, what it supports, and its limits as they are
// enforced.
#pragma once

#include <string>

#include "base/config.hpp"

namespace todoke::relay {

std::string information_document(const Config& config, std::string_view version);

}  // namespace todoke::relay

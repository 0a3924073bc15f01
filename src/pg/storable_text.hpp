// Any bytes as a text that Postgres takes: valid UTF-8 without U+0000, cut between characters at `bytes_max`.
// Bytes that are neither become '?': an error that can't be written down would be lost.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace todoke::pg {

std::string storable_text(std::string_view bytes, std::size_t bytes_max);

}  // namespace todoke::pg

#include "pg/storable_text.hpp"

#include <algorithm>

#include "base/utf8.hpp"

namespace todoke::pg {

std::string storable_text(std::string_view bytes, std::size_t bytes_max) {
  std::string text;
  while (!bytes.empty()) {
    const auto length = bytes.front() == '\0' ? 0 : character_length(bytes);
    if (text.size() + std::max<std::size_t>(length, 1) > bytes_max) break;
    if (length == 0) text.push_back('?');
    text.append(bytes.substr(0, length));
    bytes.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return text;
}

}  // namespace todoke::pg

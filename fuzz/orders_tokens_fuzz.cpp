// Any bytes as the file of tokens: it is refused in words, or every token in it opens the door under its
// name, and nothing else does.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "orders/intake/clients.hpp"
#include "require.hpp"

namespace {

using todoke::fuzz::require;

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; (at = text.find_first_not_of(separators, at)) != std::string_view::npos;) {
    const auto end = std::min(text.find_first_of(separators, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end;
  }
  return parts;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto tokens = todoke::orders::Tokens::parse(text);
  if (!tokens) {
    require(tokens.error().message.starts_with("line "));
    return 0;
  }
  std::size_t lines = 0;
  for (const auto line : split(text, "\n")) {
    const auto words = split(line.substr(0, line.find('#')), " \t\v\f\r");
    require(words.size() <= 2);
    if (words.empty()) continue;
    ++lines;
    if (words.size() == 1) require(tokens->name_of(words[0]).value_or("").starts_with("token-"));
  }
  require(tokens->size() == lines);
  if (lines == 0) require(!tokens->name_of(text) && !tokens->name_of(""));
  return 0;
}

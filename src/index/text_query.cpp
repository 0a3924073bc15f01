#include "index/text_query.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "index/tokens.hpp"

namespace todoke::index {
namespace {

constexpr std::string_view kWhiteSpace = " \t\n\r\v\f";

// Those that NIP-50 names; any other word with a colon is looked for.
bool is_extension(std::string_view part) {
  constexpr std::array<std::string_view, 5> kKeys{"include", "domain", "language", "sentiment", "nsfw"};
  const auto colon = part.find(':');
  if (colon == std::string_view::npos || colon + 1 == part.size()) return false;
  return std::find(kKeys.begin(), kKeys.end(), part.substr(0, colon)) != kKeys.end();
}

std::vector<std::string_view> parts_of(std::string_view normal) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; (at = normal.find_first_not_of(kWhiteSpace, at)) != std::string_view::npos;) {
    const auto end = std::min(normal.find_first_of(kWhiteSpace, at), normal.size());
    const auto part = normal.substr(at, end - at);
    if (!is_extension(part)) parts.push_back(part);
    at = end;
  }
  return parts;
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool is_prefix(const Token& token, std::string_view part, bool ends_the_text) {
  if (token.kind == TokenKind::single) return true;
  return token.kind == TokenKind::word && ends_the_text && token.offset + token.size == part.size() &&
         characters(text_of(token, part)) >= kPrefixMin;
}

// Tokens hold letters, digits and emoji only, so that nothing in them needs quoting beyond the quotes.
std::string phrase_of(std::string_view part, const std::vector<Token>& tokens, bool ends_the_text) {
  std::string phrase;
  std::uint16_t before = 0;
  for (const auto& token : tokens) {
    if (token.kind == TokenKind::last) continue;
    if (!phrase.empty()) phrase += fmt::format(" <{}> ", token.position - before);
    phrase += fmt::format("'{}'{}", text_of(token, part), is_prefix(token, part, ends_the_text) ? ":*" : "");
    before = token.position;
  }
  return phrase;
}

}  // namespace

Expected<TextQuery> parse_text_query(std::string_view text) {
  if (text.size() > kQueryBytesMax) return refuse("search has at most 1024 bytes");
  const auto normal = normal_text(text);
  const auto parts = parts_of(normal);
  TextQuery query;
  if (parts.empty()) return query;
  std::size_t count = 0;
  for (const auto part : parts) {
    const auto tokens = tokens_of(part);
    if (tokens.empty()) continue;
    count += tokens.size();
    const bool ends_the_text = part.data() + part.size() == normal.data() + normal.size();
    if (!query.tsquery.empty()) query.tsquery += " & ";
    query.tsquery += fmt::format("({})", phrase_of(part, tokens, ends_the_text));
  }
  if (count > kQueryTokensMax) return refuse("search has at most 64 words or characters");
  query.finds = count > 0 ? TextQuery::Finds::tokens : TextQuery::Finds::nothing;
  return query;
}

}  // namespace todoke::index

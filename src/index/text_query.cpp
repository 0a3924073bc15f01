#include "index/text_query.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "index/tokens.hpp"

namespace todoke::index {
namespace {

constexpr std::string_view kWhiteSpace = " \t\n\r\v\f";

// key:value, where the key is a word of ASCII letters. Addresses are text: https://example.com, and
// nostr:npub1… (NIP-21).
bool is_extension(std::string_view part) {
  const auto colon = part.find(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == part.size()) return false;
  const auto key = part.substr(0, colon);
  if (part[colon + 1] == '/' || key == "nostr") return false;
  return std::all_of(key.begin(), key.end(), [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
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

bool is_prefix(const Token& token, std::string_view part, bool is_last) {
  if (token.kind == TokenKind::single) return true;
  return token.kind == TokenKind::word && is_last && token.offset + token.size == part.size() &&
         characters(text_of(token, part)) >= kPrefixMin;
}

// Tokens hold letters, digits and emoji only, so that nothing in them needs quoting beyond the quotes.
std::string phrase_of(std::string_view part, const std::vector<Token>& tokens, bool is_last) {
  std::string phrase;
  std::uint16_t before = 0;
  for (const auto& token : tokens) {
    if (token.kind == TokenKind::last) continue;
    if (!phrase.empty()) phrase += fmt::format(" <{}> ", token.position - before);
    phrase += fmt::format("'{}'{}", text_of(token, part), is_prefix(token, part, is_last) ? ":*" : "");
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
    if (!query.tsquery.empty()) query.tsquery += " & ";
    query.tsquery += fmt::format("({})", phrase_of(part, tokens, part.data() == parts.back().data()));
  }
  if (count > kQueryTokensMax) return refuse("search has at most 64 words or characters");
  query.finds = count > 0 ? TextQuery::Finds::tokens : TextQuery::Finds::nothing;
  return query;
}

}  // namespace todoke::index

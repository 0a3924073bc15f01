#include "net/percent.hpp"

#include "net/text.hpp"
#include "net/ws_utf8.hpp"

namespace todoke::net {
namespace {

constexpr std::string_view kHexDigits = "0123456789ABCDEF";

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char l = lower(c);
  return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

bool unreserved(char c) {
  return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' ||
         c == '~';
}

Expected<std::string> decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return refuse("a percent sign is not followed by two hexadecimal digits");
      c = static_cast<char>(high * 16 + low);
      i += 2;
    } else if (c == '+' && plus_is_space) {
      c = ' ';
    }
    if (c == '\0') return refuse("a NUL byte is not allowed in a URL");
    out.push_back(c);
  }
  if (!is_utf8(out)) return refuse("a URL must decode to UTF-8");
  return out;
}

}  // namespace

Expected<std::string> percent_decode(std::string_view text) {
  return decode(text, false);
}

std::string percent_encode(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (unreserved(c)) {
      out.push_back(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out.push_back('%');
    out.push_back(kHexDigits[byte >> 4]);
    out.push_back(kHexDigits[byte & 15]);
  }
  return out;
}

Expected<std::vector<std::pair<std::string, std::string>>> parse_query(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> pairs;
  while (!query.empty()) {
    auto value = cut_until(query, '&');
    if (value.empty()) continue;
    if (pairs.size() == kQueryPairsMax) return refuse("too many parameters in the query");
    auto name = decode(cut_until(value, '='), true);
    if (!name) return tl::unexpected(name.error());
    auto decoded = decode(value, true);
    if (!decoded) return tl::unexpected(decoded.error());
    pairs.emplace_back(std::move(*name), std::move(*decoded));
  }
  return pairs;
}

}  // namespace todoke::net

#include "base/percent.hpp"

#include <boost/url/encode.hpp>
#include <boost/url/pct_string_view.hpp>
#include <boost/url/rfc/unreserved_chars.hpp>

#include "base/text.hpp"
#include "base/utf8.hpp"

namespace todoke {
namespace {

namespace urls = boost::urls;

Expected<std::string> decode_text(std::string_view text, bool plus_is_space) {
  const auto checked = urls::make_pct_string_view({text.data(), text.size()});
  if (!checked) return refuse("a percent sign is not followed by two hexadecimal digits");
  urls::encoding_opts options;
  options.space_as_plus = plus_is_space;
  auto decoded = checked->decode(options);
  if (decoded.find('\0') != std::string::npos) return refuse("a NUL byte is not allowed in a URL");
  if (!is_utf8(decoded)) return refuse("a URL must decode to UTF-8");
  return decoded;
}

}  // namespace

Expected<std::string> percent_decode(std::string_view text) {
  return decode_text(text, false);
}

std::string percent_encode(std::string_view text) {
  return urls::encode({text.data(), text.size()}, urls::unreserved_chars);
}

Expected<std::vector<std::pair<std::string, std::string>>> parse_query(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> pairs;
  while (!query.empty()) {
    auto value = cut_until(query, '&');
    if (value.empty()) continue;
    if (pairs.size() == kQueryPairsMax) return refuse("too many parameters in the query");
    auto name = decode_text(cut_until(value, '='), true);
    if (!name) return tl::unexpected(name.error());
    auto decoded = decode_text(value, true);
    if (!decoded) return tl::unexpected(decoded.error());
    pairs.emplace_back(std::move(*name), std::move(*decoded));
  }
  return pairs;
}

}  // namespace todoke

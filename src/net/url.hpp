// URLs as the HTTP client takes them: http and https, no user or password in them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace todoke::net {

struct Url {
  bool secure = false;
  std::string host;          // lower case; an IPv6 address without its brackets
  std::uint16_t port = 80;   // that of the scheme when the URL names none
  std::string target = "/";  // path and query, as they are sent

  // As in the Host header: without the port where it is the scheme's own.
  [[nodiscard]] std::string authority() const;
  [[nodiscard]] std::string text() const;
};

inline constexpr std::size_t kUrlBytesMax = 8 * 1024;

// A fragment is left out. Spaces, control characters and bytes above 127 must come escaped.
Expected<Url> parse_url(std::string_view text);

}  // namespace todoke::net

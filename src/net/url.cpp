#include "net/url.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "net/socket.hpp"
#include "net/text.hpp"

namespace todoke::net {
namespace {

constexpr std::uint16_t kHttpPort = 80;
constexpr std::uint16_t kHttpsPort = 443;

std::uint16_t port_of(bool secure) {
  return secure ? kHttpsPort : kHttpPort;
}

bool starts_with_ignoring_case(std::string_view text, std::string_view start) {
  return text.size() >= start.size() && same_ignoring_case(text.substr(0, start.size()), start);
}

bool printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7F; });
}

}  // namespace

std::string Url::authority() const {
  auto full = format_host_port(host, port);
  if (port == port_of(secure)) full.resize(full.rfind(':'));
  return full;
}

std::string Url::text() const {
  return fmt::format("{}://{}{}", secure ? "https" : "http", authority(), target);
}

Expected<Url> parse_url(std::string_view text) {
  if (text.size() > kUrlBytesMax) return refuse("the URL is longer than 8 KiB");
  if (!printable(text)) return refuse("a URL contains only printable ASCII characters");
  Url url;
  if (starts_with_ignoring_case(text, "https://")) {
    url.secure = true;
    text.remove_prefix(8);
  } else if (starts_with_ignoring_case(text, "http://")) {
    text.remove_prefix(7);
  } else {
    return refuse("a URL starts with http:// or https://");
  }
  text = text.substr(0, text.find('#'));
  const auto end = std::min(text.find_first_of("/?"), text.size());
  const auto authority = text.substr(0, end);
  const auto rest = text.substr(end);
  if (authority.find('@') != std::string_view::npos)
    return refuse("a user or password in a URL is not supported");

  const auto colon = authority.rfind(':');
  const bool has_port =
      colon != std::string_view::npos && authority.find(']', colon) == std::string_view::npos;
  const auto parsed = parse_host_port(has_port ? std::string(authority)
                                               : fmt::format("{}:{}", authority, port_of(url.secure)));
  if (!parsed || parsed->port == 0)
    return refuse(fmt::format("'{}' is not a host with an optional port", authority));
  url.host = parsed->host;
  std::transform(url.host.begin(), url.host.end(), url.host.begin(), lower);
  url.port = parsed->port;
  url.target = rest.starts_with('/') ? std::string(rest) : "/" + std::string(rest);
  return url;
}

}  // namespace todoke::net

#include "net/url.hpp"

#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <fmt/format.h>

#include "base/text.hpp"
#include "net/socket.hpp"

namespace todoke::net {
namespace {

namespace urls = boost::urls;

constexpr std::uint16_t kHttpPort = 80;
constexpr std::uint16_t kHttpsPort = 443;

std::uint16_t port_of(bool secure) {
  return secure ? kHttpsPort : kHttpPort;
}

// 0: there is none that can be.
std::uint16_t port_in(const urls::url_view& url, bool secure) {
  if (!url.has_port()) return port_of(secure);
  return parse_number<std::uint16_t>(url.port()).value_or(0);
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
  const auto parsed = urls::parse_uri({text.data(), text.size()});
  if (!parsed) return refuse("it is no URL (RFC 3986), such as https://host/path");
  const auto scheme = parsed->scheme_id();
  if (scheme != urls::scheme::http && scheme != urls::scheme::https)
    return refuse("a URL starts with http:// or https://");
  if (parsed->has_userinfo()) return refuse("a user or password in a URL is not supported");
  Url url;
  url.secure = scheme == urls::scheme::https;
  url.host = std::string(parsed->encoded_host_address());
  url.port = port_in(*parsed, url.secure);
  // An escape in a host would come out as anything, line ends too.
  const bool escaped = url.host.find('%') != std::string::npos;
  if (url.host.empty() || escaped || url.port == 0) {
    const auto authority = parsed->encoded_host_and_port();
    return refuse(fmt::format("'{}' is not a host with an optional port",
                              std::string_view(authority.data(), authority.size())));
  }
  for (auto& c : url.host) c = lower(c);
  const auto target = parsed->encoded_target();
  url.target = target.starts_with('/') ? std::string(target) : "/" + std::string(target);
  return url;
}

}  // namespace todoke::net

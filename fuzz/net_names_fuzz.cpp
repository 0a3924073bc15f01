// Any bytes as an address, a host with a port, a URL, a percent-encoded text, the header of a trace and the
// headers of a proxy. What is taken reads the same again when it is written; nothing throws.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/percent.hpp"
#include "base/trace.hpp"
#include "net/proxies.hpp"
#include "net/socket.hpp"
#include "net/url.hpp"
#include "require.hpp"

namespace {

using namespace todoke;
using namespace todoke::net;
using todoke::fuzz::require;

void addresses(std::string_view text) {
  if (const auto ip = parse_ip(text)) {
    const auto again = parse_ip(format_ip(*ip));
    require(again == ip);
    require(text.find_first_not_of("0123456789abcdefABCDEF.:") == std::string_view::npos);
  }
  const auto where = parse_host_port(text);
  if (where) {
    require(!where->host.empty());
    require(where->host.find_first_of(std::string_view("\0[]/@ ", 6)) == std::string::npos);
    const auto again = parse_host_port(format_host_port(where->host, where->port));
    require(again && again->host == where->host && again->port == where->port);
  } else {
    require(!where.error().message.empty());
  }
}

void urls(std::string_view text) {
  const auto url = parse_url(text);
  if (url) {
    require(!url->host.empty() && url->port != 0 && url->target.starts_with('/'));
    // Nothing of it can end the request line or begin a header.
    for (const char c : url->host + url->target) require(c > ' ' && c < 0x7F);
    const auto again = parse_url(url->text());
    require(again && again->text() == url->text() && again->host == url->host && again->port == url->port &&
            again->target == url->target && again->secure == url->secure);
  } else {
    require(!url.error().message.empty());
  }
  if (const auto decoded = percent_decode(text)) {
    require(decoded->find('\0') == std::string::npos);
    require(percent_decode(percent_encode(*decoded)) == *decoded);
  }
  if (const auto pairs = parse_query(text)) require(pairs->size() <= kQueryPairsMax);
}

void traces(std::string_view text) {
  const auto context = parse_traceparent(text);
  if (!context) return;
  require(context->valid());
  const auto again = parse_traceparent(format_traceparent(*context));
  require(again && again->trace_id == context->trace_id && again->span_id == context->span_id &&
          again->sampled == context->sampled);
}

// A client behind a listed proxy is named by an address that is none of the proxies, or by the last of them.
void forwarding(std::string_view text) {
  static const auto proxies =
      TrustedProxies::parse(std::array<std::string, 2>{"10.0.0.0/8", "2001:db8::/32"}).value();
  static constexpr std::array<std::string_view, 3> kNames{"X-Forwarded-For", "Forwarded",
                                                          "X-Forwarded-Proto"};
  Headers headers;
  for (std::size_t i = 0; !text.empty(); ++i) {
    const auto end = std::min(text.find('\n'), text.size());
    headers.add(kNames.at(i % kNames.size()), text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  const auto view = client_view("10.1.2.3", false, headers, proxies);
  const auto ip = parse_ip(view.ip);
  require(ip && format_ip(*ip) == view.ip);
  const auto stranger = client_view("192.0.2.7", true, headers, proxies);
  require(stranger.ip == "192.0.2.7" && stranger.secure);
}

void proxy_lists(std::string_view text) {
  const std::vector<std::string> blocks{std::string(text)};
  const auto proxies = TrustedProxies::parse(blocks);
  if (!proxies) return;
  // The block contains the address that it is written with.
  auto address = text.substr(0, text.find('/'));
  while (!address.empty() && (address.front() == ' ' || address.front() == '\t')) address.remove_prefix(1);
  while (!address.empty() && (address.back() == ' ' || address.back() == '\t')) address.remove_suffix(1);
  require(proxies->contains(address));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  addresses(text);
  urls(text);
  traces(text);
  forwarding(text);
  proxy_lists(text);
  return 0;
}

#include "net/hosts.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "net/proxies.hpp"

namespace todoke::net {
namespace {

constexpr std::string_view kEveryHost = "*";
constexpr std::string_view kLocalhost = "localhost";

bool is_loopback_host(const std::string& host) {
  if (host == kLocalhost) return true;
  const auto ip = parse_ip(host);
  if (!ip) return false;
  static const auto kBegin = parse_ip("127.0.0.0").value();
  static const auto kEnd = parse_ip("127.255.255.255").value();
  return (*ip >= kBegin && *ip <= kEnd) || *ip == parse_ip("::1").value();
}

}  // namespace

std::string host_of(std::string_view text) {
  if (const auto scheme = text.find("://"); scheme != std::string_view::npos) text.remove_prefix(scheme + 3);
  text = text.substr(0, text.find_first_of("/?#"));
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == std::string_view::npos) return {};
    const auto rest = text.substr(end + 1);
    if (!rest.empty() && rest.front() != ':') return {};
    text = text.substr(1, end - 1);
  } else if (std::count(text.begin(), text.end(), ':') <= 1) {
    text = text.substr(0, text.find(':'));
  }
  if (text.ends_with('.')) text.remove_suffix(1);
  std::string host(text);
  std::transform(host.begin(), host.end(), host.begin(), [](char c) { return lower(c); });
  return host;
}

bool is_loopback(std::string_view listen) {
  return is_loopback_host(host_of(listen));
}

HostRule::HostRule(std::string_view listen, std::span<const std::string> names)
    : loopback_(is_loopback(listen)) {
  for (const auto& name : names) names_.push_back(name == kEveryHost ? name : host_of(name));
  const bool every = std::find(names_.begin(), names_.end(), kEveryHost) != names_.end();
  checks_ = !every && (loopback_ || !names_.empty());
}

bool HostRule::allows(std::string_view authority) const {
  if (!checks_) return true;
  const auto host = host_of(authority);
  if (host.empty()) return false;
  if (std::find(names_.begin(), names_.end(), host) != names_.end()) return true;
  return loopback_ ? is_loopback_host(host) : parse_ip(host).has_value();
}

}  // namespace todoke::net

#include "net/proxies.hpp"

#include <algorithm>
#include <ranges>

#include <fmt/format.h>

#include "base/text.hpp"

namespace todoke::net {
namespace {

constexpr unsigned kMappedBits = 96;

// More hops than this are not looked at; real chains have a handful.
constexpr std::size_t kHopsMax = 32;

// The last kHopsMax entries of a comma-separated list.
std::vector<std::string_view> last_entries(std::string_view list) {
  std::vector<std::string_view> entries;
  while (entries.size() < kHopsMax) {
    const auto comma = list.rfind(',');
    entries.push_back(trimmed(comma == std::string_view::npos ? list : list.substr(comma + 1)));
    if (comma == std::string_view::npos) break;
    list = list.substr(0, comma);
  }
  std::reverse(entries.begin(), entries.end());
  return entries;
}

// An address as proxies write it: bare, with a port, in brackets.
std::optional<IpBytes> parse_hop(std::string_view text) {
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    return end == std::string_view::npos ? std::nullopt : parse_ip(text.substr(1, end - 1));
  }
  if (std::count(text.begin(), text.end(), ':') == 1) text = text.substr(0, text.find(':'));
  return parse_ip(text);
}

// One parameter of an element of Forwarded: for="[2001:db8::1]:4711";proto=https
std::string_view forwarded_parameter(std::string_view element, std::string_view name) {
  while (!element.empty()) {
    auto value = cut_until(element, ';');
    if (!same_ignoring_case(trimmed(cut_until(value, '=')), name)) continue;
    value = trimmed(value);
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
      value = value.substr(1, value.size() - 2);
    return value;
  }
  return {};
}

}  // namespace

Expected<TrustedProxies> TrustedProxies::parse(std::span<const std::string> blocks) {
  TrustedProxies proxies;
  for (const auto& text : blocks) {
    const auto refused = [&] {
      return refuse(fmt::format("'{}' is no address or block such as 10.0.0.0/8", text));
    };
    std::string_view rest = text;
    const auto ip = parse_ip(trimmed(cut_until(rest, '/')));
    if (!ip) return refused();
    unsigned bits = 128;
    if (text.find('/') != std::string::npos) {
      const unsigned offset = is_v4(*ip) ? kMappedBits : 0;
      const auto given = parse_number<unsigned>(trimmed(rest));
      if (!given || *given > 128 - offset) return refused();
      bits = *given + offset;
    }
    proxies.blocks_.push_back({*ip, bits});
  }
  return proxies;
}

bool TrustedProxies::contains(const IpBytes& ip) const {
  return std::any_of(blocks_.begin(), blocks_.end(), [&](const Block& block) {
    const auto whole = static_cast<std::ptrdiff_t>(block.bits / 8);
    if (!std::equal(ip.begin(), ip.begin() + whole, block.ip.begin())) return false;
    const unsigned rest = block.bits % 8;
    if (rest == 0) return true;
    const auto differing = static_cast<unsigned>(ip[block.bits / 8] ^ block.ip[block.bits / 8]);
    return differing >> (8 - rest) == 0;
  });
}

bool TrustedProxies::contains(std::string_view ip) const {
  const auto parsed = parse_ip(ip);
  return parsed && contains(*parsed);
}

bool is_forwarded(const Headers& headers) {
  return headers.has("X-Forwarded-For") || headers.has("Forwarded");
}

ClientView client_view(const std::string& peer_ip, bool secure, const Headers& headers,
                       const TrustedProxies& proxies) {
  ClientView view{peer_ip, secure};
  if (proxies.empty() || !proxies.contains(peer_ip)) return view;

  const bool old_style = headers.has("X-Forwarded-For");
  const auto list = headers.joined(old_style ? "X-Forwarded-For" : "Forwarded");
  const auto entries = list.empty() ? std::vector<std::string_view>{} : last_entries(list);
  for (const auto& entry : std::views::reverse(entries)) {
    const auto ip = parse_hop(old_style ? entry : forwarded_parameter(entry, "for"));
    if (!ip) break;
    view.ip = format_ip(*ip);
    if (!proxies.contains(*ip)) break;
  }

  std::string protocols = headers.joined("X-Forwarded-Proto");
  std::string_view protocol;
  if (!protocols.empty()) {
    protocol = last_entries(protocols).back();
  } else if (!old_style && !entries.empty()) {
    protocol = forwarded_parameter(entries.back(), "proto");
  }
  if (!protocol.empty()) view.secure = same_ignoring_case(protocol, "https");
  return view;
}

}  // namespace todoke::net

#include "nostr/auth.hpp"

#include <algorithm>
#include <array>

#include "base/bytes.hpp"
#include "base/text.hpp"

namespace todoke::nostr {
namespace {

constexpr std::size_t kChallengeBytes = 16;

// `host`, `host:port` or `[v6]:port` without the port; "" for anything else, a user name included.
std::string_view host_of(std::string_view authority) {
  const auto host_size =
      authority.starts_with('[') ? authority.find(']') + 1 : std::min(authority.find(':'), authority.size());
  const auto port = authority.substr(host_size);
  const bool good = port.empty() || (port.front() == ':' && port.substr(1).find_first_not_of("0123456789") ==
                                                                std::string_view::npos);
  if (!good || authority.find('@') != std::string_view::npos) return {};
  return authority.substr(0, host_size);
}

constexpr std::string_view kSchemeEnd = "://";

std::string_view host_of_url(std::string_view url) {
  constexpr std::array<std::string_view, 4> kSchemes = {"wss", "ws", "https", "http"};
  const auto colon = url.find(kSchemeEnd);
  if (colon == std::string_view::npos) return {};
  const auto scheme = url.substr(0, colon);
  if (std::none_of(kSchemes.begin(), kSchemes.end(),
                   [&](std::string_view known) { return same_ignoring_case(scheme, known); })) {
    return {};
  }
  const auto rest = url.substr(colon + kSchemeEnd.size());
  return host_of(rest.substr(0, rest.find_first_of("/?#")));
}

template <class Condition>
bool has_tag(const Event& event, std::string_view name, const Condition& condition) {
  const auto tags = event.tags();
  return std::any_of(tags.begin(), tags.end(),
                     [&](const auto& tag) { return tag.name() == name && condition(tag.value()); });
}

}  // namespace

bool names_relay(std::string_view url, const AuthTarget& relay) {
  const auto host = host_of_url(url);
  return !host.empty() && std::any_of(relay.hosts.begin(), relay.hosts.end(), [&](std::string_view own) {
    const bool is_url = own.find(kSchemeEnd) != std::string_view::npos;
    return same_ignoring_case(is_url ? host_of_url(own) : host_of(own), host);
  });
}

std::optional<Reason> broken_auth(const Event& event, std::string_view challenge, const AuthTarget& relay,
                                  std::chrono::sys_seconds now) {
  if (event.kind() != kAuth) return Reason::not_auth_event;
  // created_at is whatever was sent: no arithmetic with it.
  if (event.created_at() < (now - kAuthAgeMax).time_since_epoch().count() ||
      event.created_at() > (now + kAuthAgeMax).time_since_epoch().count()) {
    return Reason::created_at_out_of_range;
  }
  if (challenge.empty() ||
      !has_tag(event, "challenge", [&](std::string_view value) { return value == challenge; })) {
    return Reason::wrong_challenge;
  }
  if (!has_tag(event, "relay", [&](std::string_view value) { return names_relay(value, relay); })) {
    return Reason::wrong_relay;
  }
  return std::nullopt;
}

std::string make_challenge() {
  return random_hex(kChallengeBytes);
}

}  // namespace todoke::nostr

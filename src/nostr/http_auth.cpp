#include "nostr/http_auth.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/base64.hpp"
#include "base/bytes.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"
#include "nostr/event_parse.hpp"

namespace todoke::nostr {
namespace {

constexpr std::string_view kScheme = "Nostr";

// Path and query of a URL: what follows its authority, without the fragment.
std::string_view target_of_url(std::string_view url) {
  url = url.substr(0, url.find('#'));
  const auto authority = url.find("://");
  if (authority == std::string_view::npos) return {};
  url.remove_prefix(authority + 3);
  const auto target = url.find_first_of("/?");
  return target == std::string_view::npos ? std::string_view("/") : url.substr(target);
}

template <class Condition>
bool has_value(const Event& event, std::string_view name, const Condition& condition) {
  const auto tags = event.tags();
  return std::any_of(tags.begin(), tags.end(),
                     [&](const auto& tag) { return tag.name() == name && condition(tag.value()); });
}

bool has_payload(const Event& event, std::string_view body) {
  if (body.empty() && !event.first_value("payload")) return true;
  const auto hash = to_hex(sha256({body}));
  return has_value(event, "payload", [&](std::string_view value) { return same_ignoring_case(value, hash); });
}

}  // namespace

bool is_http_auth(std::string_view authorization) {
  return same_ignoring_case(cut_until(authorization, ' '), kScheme);
}

Expected<Event> read_http_auth(std::string_view authorization, const HttpAuthRequest& request,
                               const AuthTarget& target, std::chrono::sys_seconds now) {
  if (!is_http_auth(authorization)) return refuse("sign the request as NIP-98 says");
  cut_until(authorization, ' ');
  const auto text = from_base64(trimmed(authorization));
  if (!text) return refuse("the Authorization header is no base64");
  auto event = parse_event(*text, EventLimits{});
  if (!event) return refuse(std::string(text_of(event.error().reason)));
  if (event->kind() != kHttpAuth) return refuse(fmt::format("kind must be {}", kHttpAuth));
  // created_at is whatever was sent: no arithmetic with it.
  if (event->created_at() < (now - kHttpAuthAgeMax).time_since_epoch().count() ||
      event->created_at() > (now + kHttpAuthAgeMax).time_since_epoch().count()) {
    return refuse("created_at out of range");
  }
  if (!has_value(*event, "u", [&](std::string_view url) { return names_relay(url, target); }))
    return refuse("u names another relay");
  if (request.target && !has_value(*event, "u", [&](std::string_view url) {
        return names_relay(url, target) && target_of_url(url) == *request.target;
      })) {
    return refuse("u names another path or query");
  }
  if (!has_value(*event, "method",
                 [&](std::string_view method) { return same_ignoring_case(method, request.method); })) {
    return refuse(fmt::format("method must be {}", request.method));
  }
  if (!has_payload(*event, request.body)) return refuse("payload is not the hash of the body");
  return std::move(*event);
}

}  // namespace todoke::nostr

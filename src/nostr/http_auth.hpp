// NIP-98: a client proves who it is by signing its HTTP request. The header is `Authorization: Nostr` and an
// event of kind 27235 in base64, whose tags name the request: u, method, and payload for its body.
//
// What somebody else has seen on its way is good for the same request, for as long as kHttpAuthAgeMax.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "nostr/auth.hpp"
#include "nostr/event.hpp"

namespace todoke::nostr {

inline constexpr Kind kHttpAuth = 27235;

// How far a client's clock may be off.
inline constexpr std::chrono::seconds kHttpAuthAgeMax{60};

// A request, as far as it is signed.
struct HttpAuthRequest {
  std::string_view method;
  std::string_view body;
  // Path and query as they were sent. Nothing: `u` may have any, and only its host counts.
  std::optional<std::string_view> target;
};

// Whether an Authorization header is of this scheme.
bool is_http_auth(std::string_view authorization);

// The event of an Authorization header, if it is for this request to this server; refused: why it is not. Id
// and signature are not looked at. The scheme and port of `u` don't count, as those of the relay's AUTH
// (names_relay). A request without a body needs no payload.
Expected<Event> read_http_auth(std::string_view authorization, const HttpAuthRequest& request,
                               const AuthTarget& target, std::chrono::sys_seconds now);

}  // namespace todoke::nostr

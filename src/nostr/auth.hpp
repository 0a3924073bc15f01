// NIP-42: a client proves who it is by signing the challenge of its connection, for this relay.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nostr/event.hpp"
#include "nostr/texts.hpp"

namespace todoke::nostr {

// How far a client's clock may be off.
inline constexpr std::chrono::seconds kAuthAgeMax = std::chrono::minutes(10);

// The names of this relay: what clients connect to (the Host header) and what the operator says it is called.
struct AuthTarget {
  std::vector<std::string> hosts;  // `host`, `host:port` or a URL; an empty one names nothing
};

// Whether a URL (ws, wss, http or https) has one of these hosts.
bool names_relay(std::string_view url, const AuthTarget& relay);

// What is wrong with an answer to `challenge`, or nothing. Id and signature are not looked at. An empty
// challenge is answered by nothing.
//
// The event's `relay` is a URL (ws, wss, http or https) of which only the host counts, in any case: path,
// scheme and port are what proxies change between the client and us. A relay on another port of the same host
// could therefore pass on an answer, but only if it also got our challenge signed.
std::optional<Reason> broken_auth(const Event& event, std::string_view challenge, const AuthTarget& relay,
                                  std::chrono::sys_seconds now);

// 32 hex digits from the operating system's generator: it can't be guessed, and never comes twice.
std::string make_challenge();

}  // namespace todoke::nostr

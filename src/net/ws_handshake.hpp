// What both sides of the opening handshake share (RFC 6455, 4).
#pragma once

#include <string>
#include <string_view>

namespace todoke::net {

// A fresh Sec-WebSocket-Key: 16 random bytes in base64.
std::string new_websocket_key();
// The Sec-WebSocket-Accept that belongs to a key.
std::string websocket_accept(std::string_view key);
// Whether `list` (a comma-separated header value) has the token, without regard to case.
bool has_token(std::string_view list, std::string_view token);

}  // namespace todoke::net

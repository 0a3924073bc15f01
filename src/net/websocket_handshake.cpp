#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>

#include <openssl/evp.h>

#include "base/base64.hpp"
#include "base/bytes.hpp"
#include "base/text.hpp"
#include "net/deflate.hpp"
#include "net/websocket.hpp"
#include "net/ws_handshake.hpp"

namespace todoke::net {

namespace {

constexpr std::string_view kVersion = "13";
constexpr std::size_t kKeyChars = 24;

// 16 bytes in base64: 22 characters of its alphabet and the padding.
bool is_key(std::string_view key) {
  if (key.size() != kKeyChars || !key.ends_with("==")) return false;
  return std::all_of(key.begin(), key.end() - 2, [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '+' || c == '/';
  });
}

WsAcceptance refused(std::string_view why) {
  WsAcceptance acceptance;
  acceptance.response = error_response(400, "BAD_WEBSOCKET_REQUEST", why);
  return acceptance;
}

std::size_t count_of(const Headers& headers, std::string_view name) {
  const auto& all = headers.all();
  return static_cast<std::size_t>(std::count_if(
      all.begin(), all.end(), [name](const auto& field) { return same_ignoring_case(field.first, name); }));
}

}  // namespace

bool has_token(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    if (same_ignoring_case(trimmed(cut_until(list, ',')), token)) return true;
  }
  return false;
}

std::string new_websocket_key() {
  std::array<std::uint8_t, 16> bytes;
  random_bytes(bytes);
  return to_base64(bytes);
}

std::string websocket_accept(std::string_view key) {
  const std::string salted = std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  std::array<std::uint8_t, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  if (EVP_Digest(salted.data(), salted.size(), digest.data(), &size, EVP_sha1(), nullptr) != 1) {
    throw std::runtime_error("SHA-1 is not available");
  }
  return to_base64(std::span(digest).first(size));
}

bool is_websocket_upgrade(const Request& request) {
  return has_token(request.headers.joined("Upgrade"), "websocket") &&
         has_token(request.headers.joined("Connection"), "upgrade");
}

WsAcceptance accept_websocket(const Request& request, const WsOptions& options) {
  if (!is_websocket_upgrade(request)) return refused("not an upgrade to WebSocket");
  if (request.method != "GET") return refused("the method must be GET");
  if (!request.body.empty()) return refused("the request must not have a body");
  if (trimmed(request.headers.get("Sec-WebSocket-Version")) != kVersion) {
    WsAcceptance acceptance;
    acceptance.response = error_response(426, "WEBSOCKET_VERSION", "only version 13 is supported");
    acceptance.response.headers.set("Sec-WebSocket-Version", kVersion);
    acceptance.response.headers.set("Upgrade", "websocket");
    return acceptance;
  }
  const std::string_view key = trimmed(request.headers.get("Sec-WebSocket-Key"));
  if (!is_key(key) || count_of(request.headers, "Sec-WebSocket-Key") != 1) {
    return refused("Sec-WebSocket-Key must be 16 bytes in base64");
  }

  WsAcceptance acceptance;
  acceptance.accepted = true;
  acceptance.response.status = 101;
  auto& headers = acceptance.response.headers;
  headers.set("Upgrade", "websocket");
  headers.set("Connection", "Upgrade");
  headers.set("Sec-WebSocket-Accept", websocket_accept(key));
  const auto deflate = accept_deflate(request.headers.joined("Sec-WebSocket-Extensions"));
  if (!deflate) return refused("Sec-WebSocket-Extensions: " + deflate.error().message);
  if (options.compression && *deflate) {
    headers.set("Sec-WebSocket-Extensions", **deflate);
    acceptance.agreement.deflate = true;
  }
  return acceptance;
}

}  // namespace todoke::net

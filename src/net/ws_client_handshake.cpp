#include "net/ws_client_handshake.hpp"

#include <array>
#include <charconv>

#include <fmt/format.h>

#include "base/text.hpp"
#include "net/deflate.hpp"
#include "net/ws_handshake.hpp"

namespace todoke::net {

namespace {

// As much as HTTP servers commonly allow for all header fields together.
constexpr std::size_t kHandshakeBytesMax = 16 * 1024;

std::string request_text(const Url& url, const Headers& extra, std::string_view key, bool offer_deflate) {
  std::string text = fmt::format(
      "GET {} HTTP/1.1\r\nHost: {}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {}\r\n"
      "Sec-WebSocket-Version: 13\r\n",
      url.target, url.authority(), key);
  if (offer_deflate) text += fmt::format("Sec-WebSocket-Extensions: {}\r\n", kDeflateOffer);
  for (const auto& [name, value] : extra.all()) {
    if ((name + value).find_first_of("\r\n") != std::string::npos)
      throw NetError("a header has a line break in it");
    text += fmt::format("{}: {}\r\n", name, value);
  }
  return text + "\r\n";
}

struct HandshakeAnswer {
  int status = 0;
  Headers headers;
};

std::string_view cut_line(std::string_view& rest) {
  const auto end = rest.find("\r\n");
  const auto line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 2);
  return line;
}

HandshakeAnswer parse_answer(std::string_view head) {
  HandshakeAnswer answer;
  const std::string_view status_line = cut_line(head);
  constexpr std::string_view protocol = "HTTP/1.1 ";
  const auto digits = status_line.substr(std::min(protocol.size(), status_line.size())).substr(0, 3);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), answer.status);
  if (!status_line.starts_with(protocol) || error != std::errc() || end != digits.data() + 3) {
    throw NetError("the answer to the handshake is not HTTP/1.1");
  }
  while (!head.empty()) {
    std::string_view line = cut_line(head);
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0 || line[0] == ' ' || line[0] == '\t') {
      throw NetError("the answer to the handshake has a malformed header");
    }
    const auto name = cut_until(line, ':');
    answer.headers.add(name, trimmed(line));
  }
  return answer;
}

void check(const HandshakeAnswer& answer, std::string_view key) {
  if (answer.status != 101) {
    throw WsRefused(answer.status, fmt::format("the server answered the handshake with {}", answer.status));
  }
  const bool upgraded = has_token(answer.headers.joined("Upgrade"), "websocket") &&
                        has_token(answer.headers.joined("Connection"), "upgrade");
  if (!upgraded || answer.headers.get("Sec-WebSocket-Accept") != websocket_accept(key)) {
    throw NetError("the server did not accept the handshake as RFC 6455 asks");
  }
  if (answer.headers.has("Sec-WebSocket-Protocol"))
    throw NetError("the server chose a subprotocol that was not offered");
}

}  // namespace

Task<WsOpened> open_websocket(std::shared_ptr<Transport> transport, Url url, Headers extra,
                              bool offer_deflate) {
  const std::string key = new_websocket_key();
  const std::string request = request_text(url, extra, key, offer_deflate);
  const std::array<std::string_view, 1> parts{request};
  co_await transport->write(parts);

  std::string received;
  std::size_t head_end = std::string::npos;
  std::array<char, 1024> buffer;
  while (head_end == std::string::npos) {
    if (received.size() > kHandshakeBytesMax) throw NetError("the answer to the handshake is too long");
    const std::size_t size = co_await transport->read_some(buffer);
    if (size == 0) throw NetError("the server ended the connection during the handshake");
    received.append(buffer.data(), size);
    head_end = received.find("\r\n\r\n");
  }
  const HandshakeAnswer answer = parse_answer(std::string_view(received).substr(0, head_end + 2));
  check(answer, key);
  const auto deflate = deflate_agreed(answer.headers.joined("Sec-WebSocket-Extensions"));
  if (!deflate) throw NetError(deflate.error().message);
  if (*deflate && !offer_deflate)
    throw NetError("the server answered with an extension that was not offered");

  WsOpened opened;
  opened.agreement.deflate = *deflate;
  opened.buffered = received.substr(head_end + 4);
  co_return opened;
}

}  // namespace todoke::net

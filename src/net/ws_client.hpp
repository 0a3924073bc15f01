// A WebSocket client as coroutines. For relays that talk to relays, benches and tests.
//
// Received messages wait in an inbox with limits; while it is full nothing is read from the socket, so a slow
// caller slows the server down. Sending waits while the output queue is more than half full. Pings are
// answered by themselves. Not thread-safe: one executor. One receive, one ping and any number of sends may be
// under way at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "net/transport_tls.hpp"
#include "net/websocket.hpp"

namespace todoke::net {

struct WsMessage {
  WsOpcode opcode = WsOpcode::text;
  std::string payload;
};

struct WsClientOptions {
  WsOptions ws;
  Headers headers;    // sent with the handshake, beside its own
  TlsContextPtr tls;  // for wss; without one the system's authorities decide
  // A few hundred messages keep the socket busy while the caller works on one; the bytes bound what large
  // ones take.
  std::size_t inbox_messages_max = 256;
  std::size_t inbox_bytes_max = 1024 * 1024;
};

// The server answered the handshake with something else than 101.
class WsRefused : public NetError {
 public:
  WsRefused(int status, const std::string& what) : NetError(what), status_(status) {}
  [[nodiscard]] int status() const { return status_; }

 private:
  int status_;
};

class WsSession;

class WsClient {
 public:
  // `url`: ws:// or wss://. Throws UserError for a URL that is none, WsRefused, or NetError.
  static Task<std::shared_ptr<WsClient>> connect(std::string url, WsClientOptions options, Deadline deadline);
  // Cuts a connection that is still open.
  ~WsClient();
  WsClient(const WsClient&) = delete;
  WsClient& operator=(const WsClient&) = delete;

  // Returns when the message is queued. Throws NetError when the connection is closing or the deadline
  // passes.
  Task<void> send(WsOpcode opcode, std::string payload, Deadline deadline);
  Task<void> send_text(std::string text, Deadline deadline) {
    return send(WsOpcode::text, std::move(text), deadline);
  }
  // Nothing: the connection has ended and everything received was taken. Throws NetError when the deadline
  // passes.
  Task<std::optional<WsMessage>> receive(Deadline deadline);
  // Returns when the pong has arrived. Throws NetError.
  Task<void> ping(Deadline deadline);
  // Returns when the connection is over, with nothing left running; cuts it when the deadline passes before.
  Task<void> close(std::uint16_t code, std::string reason, Deadline deadline);

  [[nodiscard]] bool compressed() const;
  [[nodiscard]] bool ended() const;
  // As in WsHandler::on_close; 0 while the connection is open.
  [[nodiscard]] std::uint16_t close_code() const;
  [[nodiscard]] const std::string& close_reason() const;

 private:
  struct State;
  WsClient(std::shared_ptr<State> state, std::shared_ptr<WsSession> session);
  std::shared_ptr<State> state_;
  std::shared_ptr<WsSession> session_;
};

}  // namespace todoke::net

// WebSocket (RFC 6455, RFC 7692) over a Transport, server and client side.
//
// Receiving and control frames: libwslay. Sending: one output queue of shared frames for each connection.
// Every byte, control frames too, passes that queue, which is flushed once a turn of the event loop with one
// gathered write. A frame is built once and shared by all its receivers; its compressed form is made once,
// when the first receiver that negotiated compression gets it (no context takeover, so one compressed frame
// serves everybody).
//
// Bounded: message size, inflated size, headers of a message's frames, messages of all connections that have
// begun and not ended (client_memory.hpp), frames waiting to be sent (a peer that reads too slowly is closed
// with 1008 and nobody else notices), time without traffic, time a message may take to arrive, time a write
// may take (then the connection is cut without a close frame: the socket takes nothing).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/metrics.hpp"
#include "net/client_memory.hpp"
#include "net/message.hpp"
#include "net/transport.hpp"

namespace todoke::net {

enum class WsOpcode : std::uint8_t { text = 1, binary = 2 };

// A message as the server sends it (unmasked), framed once, immutable except for the compressed form, which
// is made on first use. Thread-safe.
class SharedFrame;
using FramePtr = std::shared_ptr<const SharedFrame>;
FramePtr make_frame(WsOpcode opcode, std::string_view payload);

struct WsOptions {
  std::size_t message_bytes_max = 128 * 1024;       // of a received message, after inflation
  std::size_t queue_bytes_max = 8 * 1024 * 1024;    // waiting to be sent
  std::chrono::milliseconds ping_interval{30'000};  // without traffic from the peer for that long: a ping
  std::chrono::milliseconds idle_timeout{75'000};   // without traffic for that long: closed
  std::chrono::milliseconds write_timeout{20'000};  // for one write
  // From the first byte of a message to its last; while reading is paused the time stands still.
  std::chrono::milliseconds message_timeout{30'000};
  std::chrono::milliseconds close_timeout{5'000};  // for the peer's close frame
  bool compression = true;                         // offer or accept permessage-deflate
  std::size_t compress_bytes_min = 256;            // shorter messages go out as they are
};

class WsConnection;

// What happens on one connection. Called on the connection's executor, never at the same time. A handler that
// throws closes the connection with 1011.
class WsHandler {
 public:
  virtual ~WsHandler() = default;
  virtual void on_open(const std::shared_ptr<WsConnection>& connection) = 0;
  // `payload` is valid during the call; text is valid UTF-8.
  virtual void on_message(WsOpcode opcode, std::string_view payload) = 0;
  // Once, at the end; nothing can be sent any more. The code of whichever side closed first; 1005: the peer's
  // close frame had no code; 1006: the connection ended without a close frame.
  virtual void on_close(std::uint16_t code, std::string_view reason) = 0;
  // `bytes` more of what was queued have been handed to the socket: the moment to send more of something
  // long.
  virtual void on_written(std::size_t bytes) { static_cast<void>(bytes); }
  // It is answered already.
  virtual void on_ping() {}
  virtual void on_pong(std::string_view payload) { static_cast<void>(payload); }
  // After WsConnection::drain(): everything that was read has been handed over, and no message follows. True:
  // it still has answers to give, and closes the connection itself when it has given them. False: the
  // connection closes with 1012.
  virtual bool on_drain() { return false; }
};

class WsConnection {
 public:
  virtual ~WsConnection() = default;

  // Queues a message. Ignored once the connection is closing. Only on the connection's executor.
  virtual void send(FramePtr frame) = 0;
  void send_text(std::string_view text) { send(make_frame(WsOpcode::text, text)); }
  // Sends what is queued, then a close frame, then waits for the peer's (close_timeout). What is received
  // meanwhile is dropped. The reason is cut at 123 bytes. A code that may not be sent (such as 1006) is a
  // programming error and throws.
  virtual void close(std::uint16_t code, std::string_view reason) = 0;
  // The process stops: what has been read is still handed over, what comes later is dropped; then on_drain().
  virtual void drain() = 0;
  // While paused nothing more is read from the socket: back-pressure. Counted: as many resumes as pauses.
  virtual void pause_reading() = 0;
  virtual void resume_reading() = 0;

  // Whether the peer has hung up, also while nothing is read.
  [[nodiscard]] virtual bool peer_has_ended() const = 0;
  [[nodiscard]] virtual std::size_t queued_bytes() const = 0;
  [[nodiscard]] virtual bool compressed() const = 0;
  [[nodiscard]] virtual Executor executor() const = 0;
};

// What both sides agreed on in the handshake.
struct WsAgreement {
  bool deflate = false;
};

// Server side of the handshake: the 101 response, or why the request is refused (as the response to send:
// 400, or 426 with Sec-WebSocket-Version for another version).
struct WsAcceptance {
  bool accepted = false;
  Response response;
  WsAgreement agreement;
};
WsAcceptance accept_websocket(const Request& request, const WsOptions& options);
// Whether the request asks for an upgrade to WebSocket at all.
bool is_websocket_upgrade(const Request& request);

struct WsMetrics {
  explicit WsMetrics(metrics::Registry& registry);
  metrics::Gauge& connections;                // todoke_ws_connections
  metrics::Counter& messages_received;        // todoke_ws_messages_received_total
  metrics::Counter& messages_sent;            // todoke_ws_messages_sent_total
  metrics::Counter& bytes_sent;               // todoke_ws_sent_bytes_total
  metrics::Counter& slow_closed;              // todoke_ws_slow_closed_total
  metrics::Counter& late_messages;            // todoke_ws_late_messages_total
  metrics::Family<metrics::Counter>& closed;  // todoke_ws_closed_total{code}
};

// Where a connection's message stands in memory until it is whole; nothing: it is not counted.
struct WsMemory {
  std::shared_ptr<ClientMemory> memory;
  std::string client;  // its network
};

struct WsServerSetup {
  std::shared_ptr<Transport> transport;
  std::string buffered;  // read beyond the handshake
  WsAgreement agreement;
  std::shared_ptr<WsHandler> handler;
  WsOptions options;
  WsMetrics& metrics;
  WsMemory unfinished;
};

// Runs the connection until it has ended, and closes the transport. `on_connection`, when given, gets the
// connection before on_open (the server keeps it to close it at shutdown).
Task<void> run_websocket_server(WsServerSetup setup,
                                std::function<void(const std::shared_ptr<WsConnection>&)> on_connection = {});

}  // namespace todoke::net

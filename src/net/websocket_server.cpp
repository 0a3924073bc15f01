#include "net/websocket.hpp"
#include "net/ws_session.hpp"

namespace todoke::net {

WsMetrics::WsMetrics(metrics::Registry& registry)
    : connections(registry.gauge("todoke_ws_connections", "WebSocket connections that are open.")),
      messages_received(
          registry.counter("todoke_ws_messages_received_total", "WebSocket messages received.")),
      messages_sent(
          registry.counter("todoke_ws_messages_sent_total", "WebSocket messages queued for sending.")),
      bytes_sent(
          registry.counter("todoke_ws_sent_bytes_total", "Bytes of WebSocket frames handed to sockets.")),
      slow_closed(registry.counter("todoke_ws_slow_closed_total",
                                   "Connections ended because the peer read too slowly: too much waited for "
                                   "it, or a write took too long.")),
      late_messages(registry.counter("todoke_ws_late_messages_total",
                                     "Connections ended because a message took too long to arrive.")),
      closed(
          registry.counters("todoke_ws_closed_total", "Connections that ended, by close code.", {"code"})) {}

Task<void> run_websocket_server(WsServerSetup server,
                                std::function<void(const std::shared_ptr<WsConnection>&)> on_connection) {
  WsSessionSetup setup;
  setup.role = WsRole::server;
  setup.transport = std::move(server.transport);
  setup.buffered = std::move(server.buffered);
  setup.agreement = server.agreement;
  setup.handler = std::move(server.handler);
  setup.options = server.options;
  setup.metrics = &server.metrics;
  setup.unfinished = std::move(server.unfinished);
  const auto session = std::make_shared<WsSession>(std::move(setup));
  if (on_connection) on_connection(session);
  // No coroutine of its own: its frame would live as long as the connection, with the setup in it.
  return session->run(session);
}

}  // namespace todoke::net

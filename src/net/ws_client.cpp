#include "net/ws_client.hpp"

#include <deque>

#include <boost/asio/this_coro.hpp>

#include "base/log.hpp"
#include "net/connector.hpp"
#include "net/transport_plain.hpp"
#include "net/watchdog.hpp"
#include "net/ws_client_handshake.hpp"
#include "net/ws_session.hpp"

namespace todoke::net {

struct WsClient::State final : WsHandler {
  State(const Executor& executor, WsClientOptions o)
      : options(std::move(o)), arrived(executor), room(executor), pong(executor), over(executor) {
    room.set();
  }

  void on_open(const std::shared_ptr<WsConnection>&) override {}

  void on_message(WsOpcode opcode, std::string_view payload) override {
    inbox.push_back({opcode, std::string(payload)});
    inbox_bytes += payload.size();
    arrived.set();
    if (!paused && (inbox.size() >= options.inbox_messages_max || inbox_bytes >= options.inbox_bytes_max)) {
      paused = true;
      session->pause_reading();
    }
  }

  void on_close(std::uint16_t code, std::string_view reason) override {
    ended = true;
    close_code = code;
    close_reason = reason;
    arrived.set();
    room.set();
    pong.set();
  }

  void on_written(std::size_t) override {
    if (session->queued_bytes() <= options.ws.queue_bytes_max / 2) room.set();
  }

  void on_pong(std::string_view payload) override {
    if (payload == expected_pong) pong.set();
  }

  WsMessage pop() {
    WsMessage message = std::move(inbox.front());
    inbox.pop_front();
    inbox_bytes -= message.payload.size();
    if (inbox.empty() && !ended) arrived.reset();
    if (paused && inbox.size() <= options.inbox_messages_max / 2 &&
        inbox_bytes <= options.inbox_bytes_max / 2) {
      paused = false;
      session->resume_reading();
    }
    return message;
  }

  WsClientOptions options;
  WsSession* session = nullptr;  // owns this state; every caller of these functions holds it
  std::deque<WsMessage> inbox;
  std::size_t inbox_bytes = 0;
  bool paused = false;
  // Each stays set as long as what it says is true, so several coroutines may wait for the same one.
  Signal arrived;  // the inbox has something, or nothing more will come
  Signal room;     // the output queue takes more
  Signal pong;
  Signal over;
  std::string expected_pong;
  std::uint64_t pings = 0;
  bool ended = false;
  std::uint16_t close_code = 0;
  std::string close_reason;
};

namespace {

Task<void> wait_until(Signal& signal, Deadline deadline, const char* what) {
  if (signal.is_set()) co_return;
  const bool set = co_await signal.wait_for(deadline.left());
  if (!set) throw NetError(std::string(what) + ": deadline passed");
}

Url websocket_url(const std::string& text) {
  // Apart from the scheme's name these are the URLs of HTTP (RFC 6455, 3).
  const bool secure = text.starts_with("wss://");
  if (!secure && !text.starts_with("ws://"))
    throw UserError("'" + text + "' is not a URL of ws:// or wss://");
  const auto url = parse_url((secure ? "https://" : "http://") + text.substr(secure ? 6 : 5));
  if (!url) throw UserError(url.error().message);
  return *url;
}

Task<std::shared_ptr<Transport>> connect_transport(Url url, TlsContextPtr tls, Deadline deadline) {
  const Executor executor = co_await asio::this_coro::executor;
  const HostPort where{url.host, url.port};
  ConnectedSocket connected = co_await connect_tcp(where, deadline);
  if (!url.secure) co_return make_plain_transport(executor, std::move(connected.socket), connected.peer_ip);
  if (!tls) {
    auto made = make_client_tls("", true);
    if (!made) throw NetError(made.error().message);
    tls = *made;
  }
  auto transport =
      make_tls_client_transport(executor, std::move(connected.socket), connected.peer_ip, tls, url.host);
  Watchdog watchdog(executor, [transport] { transport->close(); });
  watchdog.arm(deadline.left());
  co_await transport->handshake();
  co_return transport;
}

}  // namespace

Task<std::shared_ptr<WsClient>> WsClient::connect(std::string url_text, WsClientOptions options,
                                                  Deadline deadline) {
  const Executor executor = co_await asio::this_coro::executor;
  const Url url = websocket_url(url_text);
  const std::shared_ptr<Transport> transport = co_await connect_transport(url, options.tls, deadline);
  Watchdog watchdog(executor, [transport] { transport->close(); });
  watchdog.arm(deadline.left());
  WsOpened opened = co_await open_websocket(transport, url, options.headers, options.ws.compression);
  watchdog.disarm();

  auto state = std::make_shared<State>(executor, options);
  WsSessionSetup setup;
  setup.role = WsRole::client;
  setup.transport = transport;
  setup.buffered = std::move(opened.buffered);
  setup.agreement = opened.agreement;
  setup.handler = state;
  setup.options = options.ws;
  auto session = std::make_shared<WsSession>(std::move(setup));
  state->session = session.get();
  spawn(executor, session->run(session), [state, session](const std::exception_ptr& error) {
    if (error) log::error("ws", "a client connection failed", {{"error", describe(error)}});
    state->over.set();
  });
  co_return std::shared_ptr<WsClient>(new WsClient(std::move(state), std::move(session)));
}

WsClient::WsClient(std::shared_ptr<State> state, std::shared_ptr<WsSession> session)
    : state_(std::move(state)), session_(std::move(session)) {}

WsClient::~WsClient() {
  session_->cut("the client was dropped");
}

Task<void> WsClient::send(WsOpcode opcode, std::string payload, Deadline deadline) {
  const auto state = state_;
  const auto session = session_;
  co_await wait_until(state->room, deadline, "send");
  if (state->ended || session->closing()) throw NetError("send: the connection is closed");
  session->send(make_frame(opcode, payload));
  if (session->queued_bytes() > state->options.ws.queue_bytes_max / 2) state->room.reset();
}

Task<std::optional<WsMessage>> WsClient::receive(Deadline deadline) {
  const auto state = state_;
  const auto session = session_;
  co_await wait_until(state->arrived, deadline, "receive");
  if (state->inbox.empty()) co_return std::nullopt;
  co_return state->pop();
}

Task<void> WsClient::ping(Deadline deadline) {
  const auto state = state_;
  const auto session = session_;
  state->expected_pong = std::to_string(++state->pings);
  if (!state->ended) state->pong.reset();
  session->ping(state->expected_pong);
  co_await wait_until(state->pong, deadline, "ping");
  if (state->ended) throw NetError("ping: the connection is closed");
}

Task<void> WsClient::close(std::uint16_t code, std::string reason, Deadline deadline) {
  const auto state = state_;
  const auto session = session_;
  session->close(code, reason);
  if (state->over.is_set()) co_return;
  const bool over = co_await state->over.wait_for(deadline.left());
  if (over) co_return;
  session->cut("closing took too long");
  co_await state->over.wait();
}

bool WsClient::compressed() const {
  return session_->compressed();
}
bool WsClient::ended() const {
  return state_->ended;
}
std::uint16_t WsClient::close_code() const {
  return state_->close_code;
}
const std::string& WsClient::close_reason() const {
  return state_->close_reason;
}

}  // namespace todoke::net

// One connection of the HTTP server, from the first byte (or TLS handshake) to the last, on one executor.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/shared_value.hpp"
#include "base/trace.hpp"
#include "net/address_places.hpp"
#include "net/client_memory.hpp"
#include "net/http_codec.hpp"
#include "net/proxies.hpp"
#include "net/refusal_log.hpp"
#include "net/response_writer.hpp"
#include "net/server.hpp"
#include "net/server_metrics.hpp"
#include "net/transport_tls.hpp"
#include "net/watchdog.hpp"
#include "net/websocket.hpp"

namespace todoke::net {

// What the connections of a server share; immutable while they live, except the flag.
struct ServerContext {
  ServerContext(const ServerConfig& config, TrustedProxies trusted,
                std::shared_ptr<const SharedValue<HostRule>> rule, metrics::Registry& registry, Tracer* t)
      : listener(config.name),
        router(config.router),
        limits(config.limits),
        proxies(std::move(trusted)),
        hosts(std::move(rule)),
        metrics(registry, config.name, *config.router),
        handshake_failures(registry, config.name),
        ws_metrics(registry),
        refusals("http", registry),
        places(std::make_shared<AddressPlaces>(limits.connections_per_address, limits.prefixes)),
        unfinished(std::make_shared<ClientMemory>(metrics.unfinished_bytes, metrics.unfinished_dropped,
                                                  limits.unfinished_bytes_max)),
        tracer(t) {}

  // Counts and tells of a connection that is not served.
  void refused(Refusal why, std::string_view ip) {
    metrics.refused(why);
    refusals.refused(to_string(why), ip, std::chrono::steady_clock::now());
  }

  const std::string listener;
  const std::shared_ptr<const Router> router;
  const ServerLimits limits;
  const TrustedProxies proxies;
  const std::shared_ptr<const SharedValue<HostRule>> hosts;
  ServerMetrics metrics;
  HandshakeFailures handshake_failures;
  WsMetrics ws_metrics;
  RefusalLog refusals;
  const std::shared_ptr<AddressPlaces> places;
  const std::shared_ptr<ClientMemory> unfinished;
  Tracer* const tracer;
  std::atomic<bool> draining{false};
};

// The answer to a client that has as many connections as it may.
Response too_many_of_address();

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<ServerContext> context, std::shared_ptr<Transport> transport,
             std::shared_ptr<TlsTransport> tls);

  // Serves until the connection has ended, and closes the transport. Does not throw for what the peer does.
  Task<void> run();

  // The server stops: end as soon as the request under way is answered; at once when there is none.
  void drain();
  // At once. A handler under way still runs to its end.
  void cut();

 private:
  // What is waited for; decides what happens when the watchdog barks.
  enum class Phase { handshake, idle, header, body, handler, write, stream, late, linger, websocket };

  // The request under way, for its log line, metrics and span.
  struct Current {
    const Route* route = nullptr;
    std::string method;
    std::string pattern;
    std::string id;
    std::string client;  // its network
    SteadyTime since{};
    Span span;
    bool head_only = false;
    bool http10 = false;
    bool keep_alive = false;
  };

  // A WebSocket that begins when the request that asked for it, and all that it holds in memory, is gone.
  struct Upgraded {
    Upgraded(const Route& r, WsAgreement a, std::shared_ptr<WsHandler> h, std::string c)
        : route(r), agreement(a), handler(std::move(h)), client(std::move(c)) {}
    const Route& route;
    WsAgreement agreement;
    std::shared_ptr<WsHandler> handler;
    std::string client;  // its network
  };

  void enter(Phase phase, std::chrono::nanoseconds limit);
  void bark();
  void end_idle();
  void answer_late(int status, std::string_view code, std::string_view message);
  static Task<void> write_late(std::shared_ptr<Connection> self, Response response);

  Task<void> serve();
  Task<bool> serve_request();  // whether another one may follow
  Task<bool> read_head(RequestParser& parser);
  Task<bool> read_body(RequestParser& parser);
  Task<bool> read_more(std::size_t most);
  Task<void> discard_input();
  void hold_body(std::optional<ClientMemory::Holder>& held);
  void give_way();

  void begin_unknown();
  void begin(RequestParser& parser, Request& request);
  Task<bool> dispatch(const Route& route, Request& request);
  // False: the client has as many connections as it may.
  bool take_place(const Request& request);
  Task<void> upgrade(const Route& route, Request& request);
  Task<void> websocket();
  // What to answer where the client has used up its rate.
  std::optional<Response> pay_toll(const Request& request);
  // `unread_body`: the client may still be sending a body that the server will not read.
  Task<bool> answer(Response response, bool unread_body = false);
  Task<bool> refuse_and_close(const Fault& fault);
  // The request pays first, also where it is none.
  Task<bool> charge_and_refuse(const Request& request, const Fault& fault);
  Task<bool> refuse_unreadable(const Fault& fault);
  Task<bool> refuse_and_close(Response response);
  // A response that can't be sent becomes 500.
  Task<void> send(Response& response);
  Task<void> send_stream(std::shared_ptr<BodyStream> stream);
  Task<void> send_pieces(BodyStream& stream);
  Response internal_error(std::string_view where);
  void account(int status);

  std::shared_ptr<ServerContext> context_;
  std::shared_ptr<Transport> transport_;
  std::shared_ptr<TlsTransport> tls_;  // the same transport, or null
  Watchdog watchdog_;
  Phase phase_ = Phase::idle;
  std::string input_;  // read, not consumed yet
  Current current_;
  std::string id_prefix_;
  std::uint64_t requests_ = 0;
  // Of the client behind a listed proxy; others have theirs from accept() on.
  std::optional<AddressPlaces::Place> place_;
  std::unique_ptr<Upgraded> upgraded_;
  std::shared_ptr<WsConnection> websocket_;
  std::shared_ptr<BodyStream> stream_;
  std::unique_ptr<Signal> late_written_;  // there when an answer was given because the time was up
};

}  // namespace todoke::net

// An HTTP/1.1 server with WebSocket upgrades, on one address.
//
// A connection that has said nothing costs next to nothing (porch.hpp) and goes to no worker. Those that
// speak are spread round-robin over the workers, which take them at their own pace, and each stays on its
// own. Requests of a connection are answered one after the other, in order (pipelining). Everything a peer
// can make the server wait for has a limit (ServerLimits).
//
// A handler that is over its deadline is not interrupted: the client gets 503 DEADLINE_EXCEEDED and the
// connection ends; what the handler returns later is dropped. So handlers must bound their own waits, as
// every query does; run() waits for them.
//
// stop(): no new connections; idle ones are closed, requests under way are answered with `Connection: close`,
// WebSockets answer what they have read and get close 1012 (WsConnection::drain). What is left after
// drain_timeout is cut.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/metrics.hpp"
#include "base/service.hpp"
#include "base/trace.hpp"
#include "net/client_network.hpp"
#include "net/hosts.hpp"
#include "net/router.hpp"

namespace todoke::net {

// Only connections_max, connections_per_address, header_timeout and drain_timeout are keys. A route that
// needs another limit for its body or its handler has one (router.hpp), and nobody has a reason to turn the
// rest.
struct ServerLimits {
  // Beyond it the connection that has been silent for the longest time is closed; where all have spoken, the
  // newcomer gets 503.
  std::size_t connections_max = 10'000;
  // Open connections of a client (client_network.hpp), over it: 429 and close. Those that come through a
  // listed proxy count by the client that it names, and WebSockets alone. 0: no limit.
  std::size_t connections_per_address = 0;
  NetworkPrefixes prefixes;
  // TLS handshakes of a client; one costs as much as a thousand requests. Beyond it a connection is closed
  // when it begins one. 0: no limit.
  double handshakes_per_minute = 0;
  std::size_t body_bytes_max = 1024 * 1024;
  // Bodies and WebSocket messages that have not arrived whole, of all connections; a thousand of the largest
  // messages that a relay takes.
  std::size_t unfinished_bytes_max = 128 * 1024 * 1024;
  // From a request's first byte to the end of its header, for a TLS handshake, and for the first byte of a
  // new connection: ten times what a slow mobile line takes, and short enough that slow attackers don't fill
  // connections_max.
  std::chrono::milliseconds header_timeout{10'000};
  std::chrono::milliseconds body_timeout{30'000};  // for the whole body
  // Between requests. Longer than the 60 s of common proxies, so that they close first and never send a
  // request into a connection that is just being closed here.
  std::chrono::milliseconds idle_timeout{75'000};
  std::chrono::milliseconds request_timeout{30'000};  // for the handler
  std::chrono::milliseconds write_timeout{30'000};    // for the whole answer
  std::chrono::milliseconds drain_timeout{2'000};     // at shutdown
};

struct ServerConfig {
  std::string name = "public";            // the label `listener`
  std::string listen = "127.0.0.1:7447";  // host:port; port 0: the system chooses; IPv6 in brackets
  std::shared_ptr<const Router> router;
  bool reuse_port = false;  // other processes may listen on the same port (SO_REUSEPORT)
  std::string tls_cert;     // PEM files; both or none
  std::string tls_key;
  std::vector<std::string> trusted_proxies;  // addresses and blocks whose forwarding headers are believed
  HostRule hosts;                            // a request for another host gets 421
  ServerLimits limits;
};

class HttpServer final : public Service {
 public:
  // `executor` is where bind(), start(), run() and stop() are called; it accepts, and a flood keeps it busy.
  // Each of `workers` must run its work on one thread at a time. `tracer` may be null.
  HttpServer(ServerConfig config, Executor executor, const std::vector<Executor>& workers,
             metrics::Registry& registry, Tracer* tracer = nullptr);
  ~HttpServer() override;

  [[nodiscard]] std::string_view name() const override;
  [[nodiscard]] Expected<void> validate() const override;
  // Takes the address before start() does: an address in use is reported early (UserError), and address() is
  // known. Clients that connect before start() wait in the queue of the listener.
  Task<void> bind();
  Task<void> start() override;
  Task<void> run() override;
  void stop() override;

  // From anywhere. Reads certificate and key again: new connections use them. What is refused leaves those in
  // use.
  Expected<void> reload();

  // From now on; from anywhere.
  void set_hosts(HostRule hosts);

  // After bind() or start().
  [[nodiscard]] std::string address() const;
  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] std::size_t connections() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace todoke::net

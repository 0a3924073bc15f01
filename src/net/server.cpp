#include "net/server.hpp"

#include <array>

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "base/attempt.hpp"
#include "base/hash_table.hpp"
#include "base/log.hpp"
#include "net/connection.hpp"
#include "net/listener.hpp"
#include "net/transport_plain.hpp"

namespace todoke::net {
namespace {

// Out of file descriptors: accepting pauses this long, connections wait in the kernel's queue meanwhile.
constexpr std::chrono::milliseconds kAcceptPause(100);
constexpr std::chrono::seconds kAcceptComplaintInterval(60);
constexpr std::chrono::seconds kResolveTimeout(10);
// Connections over the cap that are told so at the same time; further ones are closed without a word.
constexpr std::size_t kRefusalsMax = 64;
constexpr std::chrono::milliseconds kRefusalTimeout(1'000);
constexpr std::size_t kRefusalReadBytesMax = 64 * 1024;
// How often the log says that handlers keep the server from stopping.
constexpr std::chrono::seconds kStragglerComplaintInterval(5);

// What belongs to one worker; touched on its executor only.
struct Lane {
  explicit Lane(Executor e) : executor(std::move(e)) {}
  const Executor executor;
  HashSet<std::shared_ptr<Connection>> connections;
};

// What runs on the workers. Everything but the reading of the counts happens on the server's executor: a
// worker that is done posts there and gives its reference away, so the signal is never touched or destroyed
// on another thread.
struct Census {
  explicit Census(const Executor& executor) : empty(executor) {}
  [[nodiscard]] bool is_empty() const { return connections == 0 && refusals == 0; }
  std::atomic<std::size_t> connections{0};
  std::atomic<std::size_t> refusals{0};
  Signal empty;
};

void count_out(std::shared_ptr<Census> census, std::atomic<std::size_t> Census::* count) {
  const Executor executor = census->empty.executor();
  asio::post(executor, [census = std::move(census), count] {
    --((*census).*count);
    if (census->is_empty()) census->empty.set();
  });
}

Task<void> serve_connection(std::shared_ptr<Lane> lane, std::shared_ptr<ServerContext> context, Fd socket,
                            std::string peer_ip, TlsContextPtr tls, AddressPlaces::PlacePtr place) {
  std::shared_ptr<TlsTransport> secure;
  std::shared_ptr<Transport> transport;
  if (tls) {
    secure = make_tls_server_transport(lane->executor, std::move(socket), std::move(peer_ip), std::move(tls));
    transport = secure;
  } else {
    transport = make_plain_transport(lane->executor, std::move(socket), std::move(peer_ip));
  }
  auto connection = std::make_shared<Connection>(context, std::move(transport), std::move(secure));
  lane->connections.insert(connection);
  const auto served = co_await attempt(connection->run());
  lane->connections.erase(connection);
  place.reset();
  if (!served) std::rethrow_exception(served.error());
}

Response server_is_full() {
  auto response =
      error_response(503, "TOO_MANY_CONNECTIONS", "the server has no room for another connection");
  response.headers.add("Retry-After", "1");
  return response;
}

// Says why and waits a moment for the client to hang up: closing at once would make its kernel drop the
// answer.
Task<void> turn_away(Executor executor, Fd socket, std::string peer_ip, Response response) {
  auto transport = make_plain_transport(executor, std::move(socket), std::move(peer_ip));
  Watchdog watchdog(executor, [transport] { transport->close(); });
  watchdog.arm(kRefusalTimeout);
  const auto head = response_head(response, {{}, false, false});
  const std::array<std::string_view, 2> parts{head, response.body};
  try {
    co_await transport->write(parts);
    co_await transport->finish();
    std::string scratch(1024, '\0');
    for (std::size_t total = 0; total < kRefusalReadBytesMax;) {
      const auto n = co_await transport->read_some(scratch);
      if (n == 0) break;
      total += n;
    }
  } catch (const NetError& error) {
    log::debug("http", "refused connection ended", {{"reason", error.what()}});
  }
  transport->close();
}

}  // namespace

struct HttpServer::State {
  State(ServerConfig c, Executor e, const std::vector<Executor>& workers, metrics::Registry& r, Tracer* t)
      : config(std::move(c)),
        service_name("http-" + config.name),
        executor(std::move(e)),
        registry(r),
        tracer(t),
        hosts(std::make_shared<SharedValue<HostRule>>(std::make_shared<const HostRule>(config.hosts))),
        census(std::make_shared<Census>(executor)),
        stop_asked(executor) {
    for (const auto& worker : workers) lanes.push_back(std::make_shared<Lane>(worker));
  }

  Task<void> accept_until_stopped();
  void admit(AcceptedSocket accepted);
  void turn_away_or_close(AcceptedSocket accepted, const Executor& worker, std::string_view why,
                          Response answer);
  void complain_about_files();
  Task<void> drain();
  void on_every_connection(void (Connection::*what)());

  const ServerConfig config;
  const std::string service_name;
  const Executor executor;
  metrics::Registry& registry;
  Tracer* const tracer;
  const std::shared_ptr<SharedValue<HostRule>> hosts;
  const std::shared_ptr<Census> census;
  std::vector<std::shared_ptr<Lane>> lanes;
  bool bound = false;  // by bind(), for the next start()
  std::size_t next_lane = 0;
  std::shared_ptr<ServerContext> context;
  TlsContextPtr tls;
  std::unique_ptr<Listener> listener;
  Signal stop_asked;
  SteadyTime complained_at{};
};

HttpServer::HttpServer(ServerConfig config, Executor executor, const std::vector<Executor>& workers,
                       metrics::Registry& registry, Tracer* tracer) {
  if (!config.router || workers.empty()) throw std::logic_error("an HTTP server needs a router and a worker");
  state_ = std::make_unique<State>(std::move(config), std::move(executor), workers, registry, tracer);
}

HttpServer::~HttpServer() = default;

std::string_view HttpServer::name() const {
  return state_->service_name;
}

Expected<void> HttpServer::validate() const {
  const auto& config = state_->config;
  if (auto address = parse_host_port(config.listen); !address) {
    return refuse(fmt::format("the {} listener: {}", config.name, address.error().message));
  }
  if (auto proxies = TrustedProxies::parse(config.trusted_proxies); !proxies) {
    return refuse("server.trusted_proxies: " + proxies.error().message);
  }
  if (config.tls_cert.empty() != config.tls_key.empty()) {
    return refuse(
        "server.tls_cert and server.tls_key: a certificate needs a key and a key a certificate; set both or "
        "none");
  }
  if (!config.tls_cert.empty()) {
    if (auto tls = make_server_tls(config.tls_cert, config.tls_key); !tls) return tl::unexpected(tls.error());
  }
  return {};
}

Task<void> HttpServer::bind() {
  auto& s = *state_;
  if (auto valid = validate(); !valid) throw UserError(valid.error().message);
  s.tls = s.config.tls_cert.empty() ? nullptr : make_server_tls(s.config.tls_cert, s.config.tls_key).value();
  s.context = std::make_shared<ServerContext>(
      s.config, TrustedProxies::parse(s.config.trusted_proxies).value(), s.hosts, s.registry, s.tracer);
  s.listener.reset();
  const auto where = parse_host_port(s.config.listen).value();
  std::string unknown;
  std::vector<SocketAddress> addresses;
  try {
    addresses = co_await resolve(where, kResolveTimeout);
  } catch (const NetError& error) {
    unknown = error.what();
  }
  if (!unknown.empty()) throw UserError(fmt::format("can't listen on {}: {}", s.config.listen, unknown));
  s.listener = std::make_unique<Listener>(s.executor, addresses.front());
  log::info("http", "listening",
            {{"listener", s.config.name}, {"address", address()}, {"tls", s.tls != nullptr}});
  s.bound = true;
}

Task<void> HttpServer::start() {
  if (!std::exchange(state_->bound, false)) {
    co_await bind();
    state_->bound = false;
  }
}

Task<void> HttpServer::run() {
  auto& s = *state_;
  const auto accepted = co_await attempt(s.accept_until_stopped());
  co_await s.drain();
  if (!accepted) std::rethrow_exception(accepted.error());
}

void HttpServer::stop() {
  state_->stop_asked.set();
  if (state_->listener) state_->listener->close();
}

Expected<void> HttpServer::reload() {
  auto& s = *state_;
  if (s.config.tls_cert.empty()) return {};
  auto fresh = make_server_tls(s.config.tls_cert, s.config.tls_key);
  if (!fresh) {
    log::error("http", "certificate not reloaded, the old one stays in use",
               {{"listener", s.config.name}, {"error", fresh.error().message}});
    return tl::unexpected(fresh.error());
  }
  s.tls = std::move(*fresh);
  log::info("http", "certificate reloaded", {{"listener", s.config.name}});
  return {};
}

void HttpServer::set_hosts(HostRule hosts) {
  state_->hosts->store(std::make_shared<const HostRule>(std::move(hosts)));
}

std::string HttpServer::address() const {
  return state_->listener->bound().text();
}
std::uint16_t HttpServer::port() const {
  return state_->listener->bound().port();
}
std::size_t HttpServer::connections() const {
  return state_->census->connections;
}

Task<void> HttpServer::State::accept_until_stopped() {
  while (!stop_asked.is_set()) {
    auto batch = co_await listener->accept_some();
    for (auto& accepted : batch.sockets) admit(std::move(accepted));
    if (batch.out_of_files) {
      context->metrics.refused("files");
      complain_about_files();
      co_await stop_asked.wait_for(kAcceptPause);
    }
  }
}

void HttpServer::State::complain_about_files() {
  const auto now = std::chrono::steady_clock::now();
  if (complained_at != SteadyTime{} && now - complained_at < kAcceptComplaintInterval) return;
  complained_at = now;
  log::error("http", "out of file descriptors or memory: new connections wait",
             {{"listener", config.name}, {"connections", census->connections.load()}});
}

void HttpServer::State::admit(AcceptedSocket accepted) {
  const auto lane = lanes[next_lane++ % lanes.size()];
  if (census->connections >= config.limits.connections_max)
    return turn_away_or_close(std::move(accepted), lane->executor, "connections_max", server_is_full());
  AddressPlaces::PlacePtr place;
  if (context->places->is_limited() && !context->proxies.contains(accepted.peer_ip)) {
    place = context->places->take(accepted.peer_ip);
    if (!place) {
      return turn_away_or_close(std::move(accepted), lane->executor, "connections_per_address",
                                too_many_of_address());
    }
  }
  ++census->connections;
  context->metrics.connections.add(1);
  spawn(lane->executor,
        serve_connection(lane, context, std::move(accepted.socket), std::move(accepted.peer_ip), tls,
                         std::move(place)),
        [c = census, ctx = context](const std::exception_ptr& error) mutable {
          if (error)
            log::error("http", "connection failed",
                       {{"listener", ctx->listener}, {"error", describe(error)}});
          ctx->metrics.connections.add(-1);
          count_out(std::move(c), &Census::connections);
        });
}

void HttpServer::State::turn_away_or_close(AcceptedSocket accepted, const Executor& worker,
                                           std::string_view why, Response answer) {
  context->metrics.refused(why);
  context->refusals.refused(why, accepted.peer_ip, std::chrono::steady_clock::now());
  if (tls || census->refusals >= kRefusalsMax) return;  // a TLS client could not read the answer
  ++census->refusals;
  spawn(worker, turn_away(worker, std::move(accepted.socket), std::move(accepted.peer_ip), std::move(answer)),
        [c = census](const std::exception_ptr& error) mutable {
          if (error) log::debug("http", "refusal failed", {{"error", describe(error)}});
          count_out(std::move(c), &Census::refusals);
        });
}

void HttpServer::State::on_every_connection(void (Connection::*what)()) {
  for (const auto& lane : lanes) {
    asio::post(lane->executor, [lane, what] {
      const auto connections = lane->connections;  // one that ends leaves the set
      for (const auto& connection : connections) ((*connection).*what)();
    });
  }
}

Task<void> HttpServer::State::drain() {
  if (!context) co_return;
  if (listener) listener->close();
  context->draining = true;
  on_every_connection(&Connection::drain);
  const auto cut_at = std::chrono::steady_clock::now() + config.limits.drain_timeout;
  bool was_cut = false;
  while (!census->is_empty()) {
    census->empty.reset();
    const auto left = cut_at - std::chrono::steady_clock::now();
    const auto limit =
        was_cut ? SteadyTime::duration(kStragglerComplaintInterval) : std::max(left, SteadyTime::duration(0));
    const bool empty = co_await census->empty.wait_for(limit);
    if (empty) continue;
    log::warning("http",
                 was_cut ? "still waiting for handlers to end" : "connections cut: they did not end in time",
                 {{"listener", config.name}, {"connections", census->connections.load()}});
    was_cut = true;
    on_every_connection(&Connection::cut);
  }
}

}  // namespace todoke::net

#include "net/server.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "base/attempt.hpp"
#include "base/hash_table.hpp"
#include "base/log.hpp"
#include "net/connection.hpp"
#include "net/listener.hpp"
#include "net/porch.hpp"
#include "net/rate_limit.hpp"
#include "net/transport_plain.hpp"

namespace todoke::net {
namespace {

// Out of file descriptors: accepting pauses this long, connections wait in the kernel's queue meanwhile.
constexpr std::chrono::milliseconds kAcceptPause(100);
constexpr std::chrono::seconds kAcceptComplaintInterval(60);
constexpr std::chrono::seconds kResolveTimeout(10);
// How many refused connections get an answer at the same time; further ones are closed without one. A close
// right after the answer would make the client's kernel drop it, so they have a moment to hang up.
constexpr std::size_t kRefusalsMax = 64;
constexpr std::chrono::milliseconds kRefusalTimeout(1'000);
// What they send meanwhile is read and dropped, so many times.
constexpr std::size_t kRefusalReadBytes = 16 * 1024;
constexpr unsigned kRefusalReadsMax = 8;
// Connections that a worker has been given and has not begun with. Further ones wait here, and not in the
// worker's loop, where they would hold up the connections that it serves.
constexpr std::size_t kBeginningMax = 16;
// How often the log says that handlers keep the server from stopping.
constexpr std::chrono::seconds kStragglerComplaintInterval(5);

struct Lane {
  explicit Lane(Executor e) : executor(std::move(e)) {}
  const Executor executor;                           // the worker's
  HashSet<std::shared_ptr<Connection>> connections;  // touched there only
  std::size_t beginning = 0;                         // touched on the server's executor only
};

Task<void> serve_connection(std::shared_ptr<Lane> lane, std::shared_ptr<ServerContext> context, Guest guest,
                            TlsContextPtr tls, std::function<void()> begun) {
  begun();
  std::shared_ptr<TlsTransport> secure;
  std::shared_ptr<Transport> transport;
  if (tls) {
    secure = make_tls_server_transport(lane->executor, std::move(guest.socket), format_ip(guest.ip),
                                       std::move(tls));
    transport = secure;
  } else {
    transport = make_plain_transport(lane->executor, std::move(guest.socket), format_ip(guest.ip));
  }
  auto connection = std::make_shared<Connection>(context, std::move(transport), std::move(secure));
  lane->connections.insert(connection);
  const auto served = co_await attempt(connection->run());
  lane->connections.erase(connection);
  guest.place.reset();
  if (!served) std::rethrow_exception(served.error());
}

Response server_is_full() {
  auto response =
      error_response(503, "TOO_MANY_CONNECTIONS", "the server has no room for another connection");
  response.headers.add("Retry-After", "1");
  return response;
}

Rate handshake_rate(const ServerLimits& limits) {
  const auto burst = std::max(limits.handshakes_per_minute, 1.0);
  return {burst / 60, burst};
}

enum class Heard { something, nothing, end };

// What the guest has sent, without taking it.
Heard heard_of(const Guest& guest) {
  char byte = 0;
  const auto n = ::recv(guest.socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (n > 0) return Heard::something;
  return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? Heard::nothing : Heard::end;
}

// Reads and drops some of what the guest has sent. False: it has hung up.
bool drop_some(const Guest& guest) {
  std::array<char, kRefusalReadBytes> scratch;
  const auto n = ::recv(guest.socket.get(), scratch.data(), scratch.size(), MSG_DONTWAIT);
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

// False: its socket does not take it.
bool say_and_finish(const Guest& guest, const Response& answer) {
  const auto text = response_head(answer, {{}, false, false}) + answer.body;
  const auto sent = ::send(guest.socket.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent == static_cast<ssize_t>(text.size()) && ::shutdown(guest.socket.get(), SHUT_WR) == 0;
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
        handshakes("handshake", handshake_rate(config.limits), config.limits.handshakes_per_minute > 0, clock,
                   r),
        all_ended(executor),
        stop_asked(executor) {
    for (const auto& worker : workers) lanes.push_back(std::make_shared<Lane>(worker));
  }

  void open_porches();
  Task<void> accept_until_stopped();
  void receive(AcceptedSocket accepted);
  void wait_for_first_byte(Guest guest);
  void heard(Guest guest);
  bool may_shake_hands(const Guest& guest);
  void hand_on();
  std::shared_ptr<Lane> lane_with_room();
  void serve(const std::shared_ptr<Lane>& lane, Guest guest);
  void turn_away(Guest guest, Refusal why);
  void let_finish(Guest guest);
  void show_open();
  void complain_about_files();
  Task<void> drain();
  void on_every_connection(void (Connection::*what)());
  // Those that wait included.
  [[nodiscard]] std::size_t open() const { return served + waiting; }

  const ServerConfig config;
  const std::string service_name;
  const Executor executor;
  metrics::Registry& registry;
  Tracer* const tracer;
  const std::shared_ptr<SharedValue<HostRule>> hosts;
  const SystemClock clock;
  RateLimiter handshakes;
  std::vector<std::shared_ptr<Lane>> lanes;
  bool bound = false;  // by bind(), for the next start()
  std::size_t next_lane = 0;
  std::shared_ptr<ServerContext> context;
  SharedValue<TlsContextPtr> tls{std::make_shared<const TlsContextPtr>()};
  std::unique_ptr<Listener> listener;
  // While run() accepts: the connections that have said nothing yet, those that wait for a worker, and those
  // that are refused.
  std::unique_ptr<Porch> silent;
  std::deque<Guest> ready;
  std::unique_ptr<Porch> refused;
  // Read from anywhere.
  std::atomic<std::size_t> waiting{0};  // the silent and the ready
  std::atomic<std::size_t> served{0};   // on the workers, or on their way there
  Signal all_ended;
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
  if (!s.config.tls_cert.empty()) {
    s.tls.store(
        std::make_shared<const TlsContextPtr>(make_server_tls(s.config.tls_cert, s.config.tls_key).value()));
  }
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
  s.listener = std::make_unique<Listener>(s.executor, addresses.front(), s.config.reuse_port);
  log::info("http", "listening",
            {{"listener", s.config.name}, {"address", address()}, {"tls", *s.tls.load() != nullptr}});
  s.bound = true;
}

Task<void> HttpServer::start() {
  if (!std::exchange(state_->bound, false)) {
    co_await bind();
    state_->bound = false;
  }
  state_->open_porches();
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
  s.tls.store(std::make_shared<const TlsContextPtr>(std::move(*fresh)));
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
  return state_->open();
}

// Before the first client comes: a process without a descriptor left ends here and not at work.
void HttpServer::State::open_porches() {
  const auto& limits = config.limits;
  // A client that connects has something to ask.
  const auto patience = std::min(limits.header_timeout, limits.idle_timeout);
  const auto end_silent = [this](const Guest& guest) {
    --waiting;
    context->refused(Refusal::silent, format_ip(guest.ip));
    show_open();
  };
  silent = std::make_unique<Porch>(
      executor, patience, Porch::Hooks{[this](Guest guest) { heard(std::move(guest)); }, end_silent});
  refused = std::make_unique<Porch>(
      executor, kRefusalTimeout,
      Porch::Hooks{[this](Guest guest) { let_finish(std::move(guest)); }, [](const Guest&) {}});
}

Task<void> HttpServer::State::accept_until_stopped() {
  while (!stop_asked.is_set()) {
    auto batch = co_await listener->accept_some();
    for (auto& accepted : batch.sockets) receive(std::move(accepted));
    show_open();
    if (batch.out_of_files) {
      context->metrics.refused(Refusal::files);
      complain_about_files();
      co_await stop_asked.wait_for(kAcceptPause);
    }
    // A flood must not keep the others on this executor from their turn.
    co_await asio::post(executor, asio::use_awaitable);
  }
}

void HttpServer::State::complain_about_files() {
  const auto now = std::chrono::steady_clock::now();
  if (complained_at != SteadyTime{} && now - complained_at < kAcceptComplaintInterval) return;
  complained_at = now;
  log::error("http", "out of file descriptors or memory: new connections wait",
             {{"listener", config.name}, {"connections", served.load()}});
}

// Beyond the bound of an address the newcomer is refused. Beyond the limit of the node the connection goes
// that has said nothing for the longest time, so that a silent client takes no place from a new one.
void HttpServer::State::receive(AcceptedSocket accepted) {
  Guest guest(std::move(accepted.socket), accepted.ip);
  if (context->places->is_limited() && !context->proxies.contains(guest.ip)) {
    if (auto place = context->places->take(guest.ip)) {
      guest.place.emplace(std::move(*place));
    } else {
      return turn_away(std::move(guest), Refusal::connections_per_address);
    }
  }
  if (open() >= config.limits.connections_max) {
    auto oldest = silent->take_oldest();
    if (!oldest) return turn_away(std::move(guest), Refusal::connections_max);
    --waiting;
    context->refused(Refusal::connections_max, format_ip(oldest->ip));
  }
  wait_for_first_byte(std::move(guest));
}

void HttpServer::State::wait_for_first_byte(Guest guest) {
  ++waiting;
  const auto what = heard_of(guest);
  if (what == Heard::nothing) return silent->add(std::move(guest));
  heard(std::move(guest));
}

void HttpServer::State::heard(Guest guest) {
  const auto what = heard_of(guest);
  if (what == Heard::something && !may_shake_hands(guest)) {
    --waiting;
    turn_away(std::move(guest), Refusal::handshakes);
  } else if (what == Heard::something) {
    ready.push_back(std::move(guest));
    hand_on();
  } else {
    --waiting;
    if (what == Heard::nothing) return wait_for_first_byte(std::move(guest));
  }
  show_open();
}

// Before a worker has anything to do with it.
bool HttpServer::State::may_shake_hands(const Guest& guest) {
  if (*tls.load() == nullptr || context->proxies.contains(guest.ip)) return true;
  const auto ip = format_ip(guest.ip);
  const auto network = network_of(ip, config.limits.prefixes);
  const std::array<RateLimiter::Charge, 1> charges{RateLimiter::Charge{network, neighbourhood_of(ip)}};
  return handshakes.take(charges).allowed;
}

void HttpServer::State::hand_on() {
  while (!ready.empty()) {
    const auto lane = lane_with_room();
    if (!lane) return;
    auto guest = std::move(ready.front());
    ready.pop_front();
    --waiting;
    serve(lane, std::move(guest));
  }
}

// In turn. Null: none.
std::shared_ptr<Lane> HttpServer::State::lane_with_room() {
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const auto& lane = lanes[next_lane++ % lanes.size()];
    if (lane->beginning < kBeginningMax) return lane;
  }
  return nullptr;
}

void HttpServer::State::serve(const std::shared_ptr<Lane>& lane, Guest guest) {
  ++lane->beginning;
  ++served;
  // `this` outlives the call: run() waits until every connection has ended.
  auto begun = [this, lane] {
    asio::post(executor, [this, lane] {
      --lane->beginning;
      hand_on();
    });
  };
  spawn(lane->executor, serve_connection(lane, context, std::move(guest), *tls.load(), std::move(begun)),
        [this](const std::exception_ptr& error) {
          if (error)
            log::error("http", "connection failed", {{"listener", config.name}, {"error", describe(error)}});
          asio::post(executor, [this] {
            if (--served == 0) all_ended.set();
            show_open();
          });
        });
}

void HttpServer::State::turn_away(Guest guest, Refusal why) {
  context->refused(why, format_ip(guest.ip));
  // A TLS client could not read the answer.
  if (*tls.load() != nullptr || refused->size() >= kRefusalsMax) return;
  const auto answer = why == Refusal::connections_max ? server_is_full() : too_many_of_address();
  if (say_and_finish(guest, answer)) refused->add(std::move(guest));
}

void HttpServer::State::let_finish(Guest guest) {
  if (drop_some(guest) && ++guest.times_heard < kRefusalReadsMax) refused->add(std::move(guest));
}

void HttpServer::State::show_open() {
  context->metrics.connections.set(static_cast<double>(open()));
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
  silent.reset();
  refused.reset();
  ready.clear();
  waiting = 0;
  context->draining = true;
  on_every_connection(&Connection::drain);
  const auto cut_at = std::chrono::steady_clock::now() + config.limits.drain_timeout;
  bool was_cut = false;
  while (served > 0) {
    all_ended.reset();
    const auto left = cut_at - std::chrono::steady_clock::now();
    const auto limit =
        was_cut ? SteadyTime::duration(kStragglerComplaintInterval) : std::max(left, SteadyTime::duration(0));
    const bool empty = co_await all_ended.wait_for(limit);
    if (empty) continue;
    log::warning("http",
                 was_cut ? "still waiting for handlers to end" : "connections cut: they did not end in time",
                 {{"listener", config.name}, {"connections", served.load()}});
    was_cut = true;
    on_every_connection(&Connection::cut);
  }
  show_open();
}

}  // namespace todoke::net

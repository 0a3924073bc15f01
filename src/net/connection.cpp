#include "net/connection.hpp"

#include <algorithm>
#include <array>

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "base/attempt.hpp"
#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"

namespace todoke::net {
namespace {

constexpr std::size_t kReadHeadBytes = 4 * 1024;   // most requests fit in one read
constexpr std::size_t kReadBodyBytes = 16 * 1024;  // one TLS record
// After an answer that ends the connection early, what the client still sends is read and dropped for this
// long, because closing with unread input makes the client's kernel throw the answer away.
constexpr std::chrono::milliseconds kLingerTimeout(1'000);
constexpr std::size_t kLingerBytesMax = 4 * 1024 * 1024;
// For the answer that says that the time was up.
constexpr std::chrono::milliseconds kLateWriteTimeout(2'000);
constexpr std::size_t kRequestIdBytesMax = 64;
constexpr std::size_t kIdPrefixBytes = 8;      // random for each connection; its requests are numbered
constexpr std::size_t kMethodBytesShown = 16;  // in logs and spans: a client may send anything as a method
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

constexpr std::string_view kLineBreak = "\r\n";
constexpr std::string_view kLastChunk = "0\r\n\r\n";

constexpr std::string_view kForeignHost =
    "this node does not know itself by the name in the Host header; its operator names it with server.hosts";

// A target with a host of its own (http://host/path) overrides the header. HTTP/1.0 may do without either.
bool is_for(const HostRule& hosts, const Request& request, bool http10) {
  if (!hosts.checks()) return true;
  if (request.target.find("://") < request.target.find('/') && !hosts.allows(request.target)) return false;
  if (http10 && !request.headers.has("Host")) return true;
  return hosts.allows(request.headers.joined("Host"));
}

bool usable_request_id(std::string_view id) {
  return !id.empty() && id.size() <= kRequestIdBytesMax && std::all_of(id.begin(), id.end(), [](char c) {
    return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  });
}

// The media type without its parameters.
std::string_view media_type(std::string_view content_type) {
  return trimmed(cut_until(content_type, ';'));
}

// Why a request is refused although its path and method are right.
std::optional<Fault> check_body_headers(const Route& route, const Request& request, bool has_body) {
  const auto type = request.headers.get("Content-Type");
  // Which of them a proxy before us has looked at is not known.
  if (request.headers.joined("Content-Type") != type)
    return Fault{400, "BAD_REQUEST", "several Content-Type headers"};
  const auto& wanted = route.options.content_type;
  if (has_body && !wanted.empty() && !same_ignoring_case(media_type(type), wanted)) {
    return Fault{415, "UNSUPPORTED_MEDIA_TYPE", fmt::format("the body must be {}", wanted)};
  }
  const auto encoding = request.headers.joined("Content-Encoding");
  if (has_body && !encoding.empty() && !same_ignoring_case(encoding, "identity")) {
    return Fault{415, "UNSUPPORTED_MEDIA_TYPE", "a compressed body is not supported"};
  }
  return std::nullopt;
}

}  // namespace

Response too_many_of_address() {
  auto response =
      error_response(429, "TOO_MANY_CONNECTIONS", "too many connections are open from this address");
  response.headers.add("Retry-After", "10");
  return response;
}

Connection::Connection(std::shared_ptr<ServerContext> context, std::shared_ptr<Transport> transport,
                       std::shared_ptr<TlsTransport> tls)
    : context_(std::move(context)),
      transport_(std::move(transport)),
      tls_(std::move(tls)),
      watchdog_(transport_->executor(), [this] { bark(); }) {}

void Connection::enter(Phase phase, std::chrono::nanoseconds limit) {
  phase_ = phase;
  watchdog_.arm(limit);
}

void Connection::drain() {
  if (websocket_) {
    websocket_->drain();
  } else if (stream_) {
    stream_->stop();
  } else if (phase_ == Phase::idle || phase_ == Phase::handshake) {
    transport_->close();
  }
}

void Connection::cut() {
  transport_->close();
}

void Connection::bark() {
  switch (phase_) {
    case Phase::header:
    case Phase::body:
      return answer_late(408, "REQUEST_TIMEOUT", "the request did not arrive in time");
    case Phase::handler:
      return answer_late(503, "DEADLINE_EXCEEDED", "the request took too long");
    case Phase::idle:
      return end_idle();
    case Phase::handshake:
    case Phase::write:
    case Phase::stream:
    case Phase::late:
    case Phase::linger:
    case Phase::websocket:
      return transport_->close();
  }
}

// Every connection ends so between two requests; after a TLS handshake the client has not asked for anything
// yet.
void Connection::end_idle() {
  if (requests_ == 1) {
    context_->refused(Refusal::silent, transport_->peer_ip());
  }
  transport_->close();
}

// The coroutine of the connection is inside a read or a handler and can't write; a second one answers for it.
void Connection::answer_late(int status, std::string_view code, std::string_view message) {
  late_written_ = std::make_unique<Signal>(transport_->executor());
  current_.keep_alive = false;
  enter(Phase::late, kLateWriteTimeout);
  account(status);
  auto self = shared_from_this();
  spawn(transport_->executor(), write_late(self, error_response(status, code, message)),
        [self](const std::exception_ptr& error) {
          if (error) log::debug("http", "late answer not written", {{"error", describe(error)}});
          self->enter(Phase::linger, kLingerTimeout);
          self->late_written_->set();
        });
}

Task<void> Connection::write_late(std::shared_ptr<Connection> self, Response response) {
  const auto& current = self->current_;
  const auto head = response_head(response, {current.id, false, current.http10});
  const std::array<std::string_view, 2> parts{head, current.head_only ? std::string_view() : response.body};
  co_await self->transport_->write(parts);
  co_await self->transport_->finish();
}

Task<void> Connection::run() {
  const auto served = co_await attempt(serve());
  const bool is_lost = !served && is_a<NetError>(served.error());
  if (is_lost) {
    log::debug("http", "connection ended",
               {{"listener", context_->listener}, {"reason", describe(served.error())}});
  }
  if (late_written_) co_await late_written_->wait();
  websocket_.reset();
  watchdog_.disarm();
  transport_->close();
  if (!served && !is_lost) std::rethrow_exception(served.error());
}

Task<void> Connection::serve() {
  if (tls_) {
    enter(Phase::handshake, context_->limits.header_timeout);
    try {
      co_await tls_->handshake();
    } catch (const NetError& error) {
      if (!context_->draining) context_->handshake_failures.note(error.what());
      throw;
    }
  }
  bool more = true;
  while (more) more = co_await serve_request();
  if (upgraded_) co_await websocket();
}

Task<bool> Connection::serve_request() {
  RequestParser parser;
  const bool has_head = co_await read_head(parser);
  if (!has_head) co_return false;
  Request request = parser.take_head();
  begin(parser, request);
  if (const auto hosts = context_->hosts->load(); !is_for(*hosts, request, current_.http10)) {
    context_->metrics.host_refused();
    const Fault fault{421, "MISDIRECTED_REQUEST", std::string(kForeignHost)};
    co_return co_await charge_and_refuse(request, fault);
  }

  auto match = context_->router->match(request);
  current_.route = match.route;
  current_.pattern = request.route.empty() ? "none" : request.route;
  if (context_->tracer != nullptr) {
    current_.span =
        context_->tracer->start(fmt::format("{} {}", current_.method, current_.pattern), request.trace);
    if (current_.span.context().valid()) request.trace = current_.span.context();
  }
  if (match.route != nullptr && match.route->is_websocket()) {
    if (parser.has_body()) {
      const Fault fault{400, "BAD_REQUEST", "an upgrade has no body"};
      co_return co_await refuse_and_close(fault);
    }
    if (current_.http10) {
      const Fault fault{400, "BAD_REQUEST", "a WebSocket needs HTTP/1.1"};
      co_return co_await refuse_and_close(fault);
    }
    co_await upgrade(*match.route, request);
    co_return false;
  }

  const auto* route = match.route;
  if (route == nullptr || route->options.pays_toll) {
    if (auto refused = pay_toll(request)) co_return co_await refuse_and_close(std::move(*refused));
  }
  parser.limit_body(route == nullptr
                        ? context_->limits.body_bytes_max
                        : route->options.body_bytes_max.value_or(context_->limits.body_bytes_max));
  if (parser.state() == ParseState::failed) co_return co_await refuse_and_close(parser.fault());
  if (route != nullptr) {
    const auto fault = check_body_headers(*route, request, parser.has_body());
    if (fault) co_return co_await refuse_and_close(*fault);
  }
  if (parser.state() == ParseState::body) {
    const auto expect = request.headers.get("Expect");
    if (!expect.empty()) {
      if (!same_ignoring_case(expect, "100-continue")) {
        const Fault fault{417, "EXPECTATION_FAILED", "only 100-continue can be expected"};
        co_return co_await refuse_and_close(fault);
      }
      if (route == nullptr) {  // the client waits before it sends the body: answer now, and never read it
        current_.keep_alive = false;
        co_return co_await answer(std::move(match.answer));
      }
      const std::array<std::string_view, 1> parts{kContinue};
      enter(Phase::write, context_->limits.write_timeout);
      if (!parser.http10()) co_await transport_->write(parts);
    }
    const bool has_body = co_await read_body(parser);
    if (!has_body) co_return false;
  }
  if (route == nullptr) co_return co_await answer(std::move(match.answer));
  request.body = parser.take_body();
  co_return co_await dispatch(*route, request);
}

Task<bool> Connection::read_head(RequestParser& parser) {
  begin_unknown();
  if (input_.empty()) {
    if (context_->draining) co_return false;
    if (input_.capacity() > 2 * kReadHeadBytes) input_.shrink_to_fit();
    const auto& limits = context_->limits;
    // A client that connects has something to ask.
    const auto first = std::min(limits.header_timeout, limits.idle_timeout);
    enter(Phase::idle, requests_ == 1 ? first : limits.idle_timeout);
  } else {
    enter(Phase::header, context_->limits.header_timeout);
  }
  while (true) {
    const auto consumed = parser.feed(input_);
    input_.erase(0, consumed);
    if (parser.state() == ParseState::failed) co_return co_await refuse_unreadable(parser.fault());
    if (parser.state() != ParseState::head) co_return true;
    const bool more = co_await read_more(kReadHeadBytes);
    if (!more) co_return false;
    if (phase_ == Phase::idle) {
      enter(Phase::header, context_->limits.header_timeout);
      current_.since = std::chrono::steady_clock::now();
    }
  }
}

Task<bool> Connection::read_body(RequestParser& parser) {
  enter(Phase::body, context_->limits.body_timeout);
  std::optional<ClientMemory::Holder> held;
  for (std::size_t bytes = 0;;) {
    const auto consumed = parser.feed(input_);
    input_.erase(0, consumed);
    bytes += consumed;
    if (parser.state() == ParseState::failed) co_return co_await refuse_and_close(parser.fault());
    if (parser.state() == ParseState::complete) co_return true;
    if (!held) hold_body(held);
    held->hold(bytes);
    const bool more = co_await read_more(kReadBodyBytes);
    if (!more) co_return false;
  }
}

void Connection::hold_body(std::optional<ClientMemory::Holder>& held) {
  held.emplace(context_->unfinished, current_.client,
               [weak = weak_from_this(), executor = transport_->executor()] {
                 asio::post(executor, [weak] {
                   if (const auto self = weak.lock()) self->give_way();
                 });
               });
}

// The body may have come to its end meanwhile.
void Connection::give_way() {
  if (phase_ == Phase::body)
    answer_late(503, "TOO_MANY_REQUESTS", "too many requests are on their way; try again later");
}

Task<bool> Connection::read_more(std::size_t most) {
  const auto before = input_.size();
  input_.resize(before + most);
  const auto n = co_await transport_->read_some(std::span(input_).subspan(before));
  input_.resize(before + n);
  if (late_written_) {
    co_await discard_input();
    throw NetError("the request did not arrive in time");
  }
  co_return n > 0;
}

Task<void> Connection::discard_input() {
  input_.assign(kReadHeadBytes, '\0');
  for (std::size_t total = 0; total < kLingerBytesMax;) {
    const auto n = co_await transport_->read_some(input_);
    if (n == 0) co_return;
    total += n;
  }
}

// Before the header is known: enough to answer and to log what never becomes a request.
void Connection::begin_unknown() {
  if (id_prefix_.empty()) id_prefix_ = random_hex(kIdPrefixBytes);
  current_ = Current{};
  current_.method = "none";
  current_.pattern = "none";
  current_.id = fmt::format("{}-{}", id_prefix_, ++requests_);
  current_.since = std::chrono::steady_clock::now();
}

void Connection::begin(RequestParser& parser, Request& request) {
  current_.method = request.method.substr(0, kMethodBytesShown);
  current_.head_only = request.method == "HEAD";
  current_.http10 = parser.http10();
  current_.keep_alive = parser.keep_alive() && !context_->draining;
  current_.since = std::chrono::steady_clock::now();
  const auto given = request.headers.get("X-Request-Id");
  if (usable_request_id(given)) current_.id = given;
  request.request_id = current_.id;
  request.peer_ip = transport_->peer_ip();
  auto client = client_view(request.peer_ip, transport_->secure(), request.headers, context_->proxies);
  request.client_ip = std::move(client.ip);
  current_.client = network_of(request.client_ip, context_->limits.prefixes);
  if (is_forwarded(request.headers) && !context_->proxies.contains(request.peer_ip))
    context_->refusals.forwarded(request.peer_ip);
  request.secure = client.secure;
  request.trace = parse_traceparent(request.headers.get("traceparent"));
}

// Inside a catch block. The text of the exception is for the log alone.
Response Connection::internal_error(std::string_view where) {
  log::error("http", "handler failed",
             {{"listener", context_->listener},
              {"route", where},
              {"request", current_.id},
              {"error", describe(std::current_exception())}});
  return error_response(500, "INTERNAL", "internal error");
}

Task<bool> Connection::dispatch(const Route& route, Request& request) {
  enter(Phase::handler, route.options.deadline.value_or(context_->limits.request_timeout));
  Response response;
  try {
    response = co_await route.handler(request);
  } catch (...) {
    response = internal_error(route.pattern);
  }
  if (late_written_) co_return false;
  co_return co_await answer(std::move(response));
}

bool Connection::take_place(const Request& request) {
  if (!context_->places->is_limited() || !context_->proxies.contains(request.peer_ip)) return true;
  if (auto place = context_->places->take(parse_ip(request.client_ip).value_or(IpBytes{}))) {
    place_.emplace(std::move(*place));
    return true;
  }
  context_->refused(Refusal::connections_per_address, request.client_ip);
  return false;
}

Task<void> Connection::upgrade(const Route& route, Request& request) {
  auto acceptance = accept_websocket(request, route.ws_options);
  if (!acceptance.accepted) {
    if (auto refused = pay_toll(request)) acceptance.response = std::move(*refused);
  }
  std::shared_ptr<WsHandler> handler;
  if (acceptance.accepted && !take_place(request)) {
    acceptance.response = too_many_of_address();
  } else if (acceptance.accepted) {
    try {
      handler = route.make_ws_handler(request);
      if (!handler)
        acceptance.response = error_response(503, "UNAVAILABLE", "no room for another connection");
    } catch (...) {
      acceptance.response = internal_error(route.pattern);
    }
  }
  if (!handler) {
    current_.keep_alive = false;
    co_await answer(std::move(acceptance.response));
    co_return;
  }
  co_await send(acceptance.response);
  account(acceptance.response.status);
  upgraded_ = std::make_unique<Upgraded>(route, acceptance.agreement, std::move(handler), current_.client);
}

Task<void> Connection::websocket() {
  phase_ = Phase::websocket;
  watchdog_.disarm();
  current_ = Current{};
  std::function<void(const std::shared_ptr<WsConnection>&)> keep = [this](const auto& connection) {
    websocket_ = connection;
    if (context_->draining) drain();
  };
  WsServerSetup setup{transport_,
                      std::move(input_),
                      upgraded_->agreement,
                      std::move(upgraded_->handler),
                      upgraded_->route.ws_options,
                      context_->ws_metrics,
                      {context_->unfinished, std::move(upgraded_->client)}};
  return run_websocket_server(std::move(setup), std::move(keep));
}

Task<bool> Connection::answer(Response response, bool unread_body) {
  if (context_->draining) current_.keep_alive = false;
  const auto sent = co_await attempt(send(response));
  account(response.status);
  if (!sent) std::rethrow_exception(sent.error());
  const bool has_stream = response.stream && !current_.head_only && may_have_body(response.status);
  if (has_stream) co_await send_stream(std::move(response.stream));
  if (current_.keep_alive) co_return true;
  co_await transport_->finish();
  if (unread_body || !input_.empty()) {
    enter(Phase::linger, kLingerTimeout);
    co_await discard_input();
  }
  co_return false;
}

Task<bool> Connection::refuse_and_close(const Fault& fault) {
  co_return co_await refuse_and_close(error_response(fault.status, fault.code, fault.message));
}

Task<bool> Connection::refuse_and_close(Response response) {
  current_.keep_alive = false;
  co_return co_await answer(std::move(response), true);
}

Task<bool> Connection::charge_and_refuse(const Request& request, const Fault& fault) {
  if (auto limited = pay_toll(request)) co_return co_await refuse_and_close(std::move(*limited));
  co_return co_await refuse_and_close(fault);
}

// A proxy does not pay for what its clients send.
Task<bool> Connection::refuse_unreadable(const Fault& fault) {
  Request unreadable;
  unreadable.client_ip = transport_->peer_ip();
  if (context_->proxies.contains(unreadable.client_ip)) co_return co_await refuse_and_close(fault);
  co_return co_await charge_and_refuse(unreadable, fault);
}

std::optional<Response> Connection::pay_toll(const Request& request) {
  auto refused = context_->router->pay_toll(request);
  if (refused) context_->metrics.limited();
  return refused;
}

Task<void> Connection::send(Response& response) {
  enter(Phase::write, context_->limits.write_timeout);
  // Only the end of the connection tells HTTP/1.0 where a body of unknown length ends.
  if (response.stream && current_.http10) current_.keep_alive = false;
  const ResponseFrame frame{current_.id, current_.keep_alive, current_.http10};
  std::string head;
  try {
    head = response_head(response, frame);
  } catch (const std::invalid_argument&) {
    response = internal_error(current_.pattern);
    head = response_head(response, frame);
  }
  const bool has_body = !current_.head_only && may_have_body(response.status);
  const std::array<std::string_view, 2> parts{
      head, has_body ? std::string_view(response.body) : std::string_view()};
  co_await transport_->write(parts);
}

Task<void> Connection::send_stream(std::shared_ptr<BodyStream> stream) {
  stream_ = std::move(stream);
  if (context_->draining) stream_->stop();
  const auto sent = co_await attempt(send_pieces(*stream_));
  stream_.reset();
  if (sent) co_return;
  if (is_a<NetError>(sent.error())) std::rethrow_exception(sent.error());
  log::error("http", "a body broke off",
             {{"listener", context_->listener},
              {"route", current_.pattern},
              {"request", current_.id},
              {"error", describe(sent.error())}});
  throw NetError("the body broke off");
}

// Each piece has the time of a whole answer to be written; the wait for it has none.
Task<void> Connection::send_pieces(BodyStream& stream) {
  while (true) {
    phase_ = Phase::stream;
    watchdog_.disarm();
    const auto piece = co_await stream.next();
    enter(Phase::write, context_->limits.write_timeout);
    if (!piece) break;
    if (piece->empty()) continue;
    const auto size = current_.http10 ? std::string() : fmt::format("{:x}\r\n", piece->size());
    const std::array<std::string_view, 3> parts{size, *piece, current_.http10 ? "" : kLineBreak};
    co_await transport_->write(parts);
  }
  if (current_.http10) co_return;
  const std::array<std::string_view, 1> last{kLastChunk};
  co_await transport_->write(last);
}

void Connection::account(int status) {
  const auto elapsed = std::chrono::steady_clock::now() - current_.since;
  const auto seconds = std::chrono::duration<double>(elapsed).count();
  context_->metrics.count(current_.route, current_.method, status, seconds);
  current_.span.set("http.status", std::int64_t{status});
  if (status >= 500) current_.span.fail();
  current_.span.end();
  // Clients can make any number of mistakes: they are counted, and logged at debug only.
  const auto level = status < 500 ? log::Level::debug : log::Level::info;
  log::write(level, "http", "request",
             {{"listener", context_->listener},
              {"method", current_.method},
              {"route", current_.pattern},
              {"status", status},
              {"ms", seconds * 1000},
              {"request", current_.id}});
}

}  // namespace todoke::net

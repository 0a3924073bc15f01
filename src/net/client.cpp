#include "net/client.hpp"

#include <array>

#include <fmt/format.h>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "net/client_pool.hpp"
#include "net/connector.hpp"
#include "net/http_codec.hpp"
#include "net/response_writer.hpp"
#include "net/transport_plain.hpp"
#include "net/transport_tls.hpp"
#include "net/watchdog.hpp"

namespace todoke::net {
namespace {

using Kind = ClientError::Kind;

constexpr std::size_t kReadBytes = 16 * 1024;
// 1xx answers before the real one.
constexpr int kInterimMax = 8;

bool is_own_header(std::string_view name) {
  for (const auto* own : {"Host", "Content-Length", "Connection", "Transfer-Encoding", "User-Agent"}) {
    if (same_ignoring_case(name, own)) return true;
  }
  return false;
}

std::string request_head(const ClientRequest& request, const std::string& user_agent) {
  if (!valid_header(request.method, "")) throw std::invalid_argument("not an HTTP method: " + request.method);
  auto head = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {}\r\n", request.method,
                          request.url.target, request.url.authority(), user_agent);
  if (request.trace) head += fmt::format("traceparent: {}\r\n", format_traceparent(*request.trace));
  const bool expects_body = request.method == "POST" || request.method == "PUT" || request.method == "PATCH";
  if (expects_body || !request.body.empty())
    head += fmt::format("Content-Length: {}\r\n", request.body.size());
  for (const auto& [name, value] : request.headers.all()) {
    if (!valid_header(name, value))
      throw std::invalid_argument("a request header that can't be sent: " + name);
    if (!is_own_header(name)) head += fmt::format("{}: {}\r\n", name, value);
  }
  return head + "\r\n";
}

struct Answer {
  Response response;
  bool keep_alive = false;
};

// Reads one response, and what precedes it (100 Continue, 103 Early Hints).
Task<Answer> read_answer(SocketTransport& transport, bool head_only, std::size_t body_bytes_max) {
  std::string input;
  for (int interim = 0; interim <= kInterimMax; ++interim) {
    ResponseParser parser(body_bytes_max, head_only);
    while (true) {
      const auto consumed = parser.feed(input);
      input.erase(0, consumed);
      if (parser.state() == ParseState::failed)
        throw ClientError(Kind::bad_response, true, parser.fault().message);
      if (parser.state() == ParseState::complete) break;
      if (parser.state() == ParseState::body && consumed > 0 && !input.empty()) continue;
      const auto before = input.size();
      input.resize(before + kReadBytes);
      const auto n = co_await transport.read_some(std::span(input).subspan(before));
      input.resize(before + n);
      if (n > 0) continue;
      parser.feed_end();
      if (parser.state() == ParseState::failed) throw NetError(parser.fault().message);
    }
    Answer answer{parser.take_response(), parser.keep_alive() && input.empty()};
    if (answer.response.status >= 200) co_return answer;
    if (answer.response.status == 101) break;
  }
  throw ClientError(Kind::bad_response, true, "no final answer: too many interim ones, or a protocol switch");
}

// Whether the connection broke before the request can have had an effect, or the request may have it twice.
bool was_lost(const std::exception_ptr& failure, bool is_repeatable) {
  try {
    std::rethrow_exception(failure);
  } catch (const ClientError& error) {
    const bool is_lost = error.kind() == Kind::lost_unsent || error.kind() == Kind::lost_sent;
    return is_lost && (is_repeatable || !error.peer_may_have_seen());
  } catch (...) {
    return false;
  }
}

}  // namespace

struct HttpClient::State {
  State(Executor e, ClientOptions o, TlsContextPtr t)
      : executor(std::move(e)),
        options(std::move(o)),
        tls(std::move(t)),
        pool(options.idle_per_host_max, options.idle_total_max, options.idle_timeout) {}

  Task<std::shared_ptr<SocketTransport>> connect(Url url, Deadline deadline) const;
  Task<Answer> exchange(std::shared_ptr<SocketTransport> transport, const ClientRequest& request,
                        const std::string& head, Deadline deadline) const;

  const Executor executor;
  const ClientOptions options;
  const TlsContextPtr tls;
  ClientPool pool;
};

HttpClient::HttpClient(Executor executor, ClientOptions options) {
  auto tls = make_client_tls(options.ca_file, options.verify_peer);
  if (!tls) throw UserError(tls.error().message);
  state_ = std::make_shared<State>(std::move(executor), std::move(options), std::move(*tls));
}

HttpClient::~HttpClient() = default;

std::size_t HttpClient::idle_connections() const {
  return state_->pool.size();
}

Task<std::shared_ptr<SocketTransport>> HttpClient::State::connect(Url url, Deadline deadline) const {
  try {
    const HostPort where(url.host, url.port);
    auto connected = co_await connect_tcp(where, deadline);
    if (!url.secure) {
      co_return make_plain_transport(executor, std::move(connected.socket), std::move(connected.peer_ip));
    }
    auto transport = make_tls_client_transport(executor, std::move(connected.socket),
                                               std::move(connected.peer_ip), tls, url.host);
    Watchdog watchdog(executor, [transport] { transport->close(); });
    watchdog.arm(deadline.left());
    co_await transport->handshake();
    co_return transport;
  } catch (const NetError& error) {
    throw ClientError(deadline.passed() ? Kind::timeout : Kind::connect, false, error.what());
  }
}

Task<Answer> HttpClient::State::exchange(std::shared_ptr<SocketTransport> transport,
                                         const ClientRequest& request, const std::string& head,
                                         Deadline deadline) const {
  const auto sent_before = transport->bytes_sent();
  bool timed_out = false;
  Watchdog watchdog(executor, [&timed_out, transport] {
    timed_out = true;
    transport->close();
  });
  watchdog.arm(deadline.left());
  try {
    const std::array<std::string_view, 2> parts{head, request.body};
    co_await transport->write(parts);
    co_return co_await read_answer(*transport, request.method == "HEAD", options.body_bytes_max);
  } catch (const ClientError&) {
    transport->close();
    throw;
  } catch (const NetError& error) {
    transport->close();
    const bool sent = transport->bytes_sent() > sent_before;
    if (timed_out) throw ClientError(Kind::timeout, sent, "no complete answer in time");
    throw ClientError(sent ? Kind::lost_sent : Kind::lost_unsent, sent, error.what());
  }
}

Task<Response> HttpClient::send(ClientRequest request, Deadline deadline) {
  const auto state = state_;
  const auto head = request_head(request, state->options.user_agent);
  const auto origin = fmt::format("{}://{}", request.url.secure ? "https" : "http",
                                  fmt::format("{}:{}", request.url.host, request.url.port));
  auto transport = state->pool.borrow(origin);
  bool reused = transport != nullptr;
  while (true) {
    if (!transport) transport = co_await state->connect(request.url, deadline);
    if (request.may_go && !request.may_go()) {
      state->pool.give_back(origin, std::move(transport));
      throw ClientError(Kind::held_back, false, "the request was held back");
    }
    auto answer = co_await attempt(state->exchange(transport, request, head, deadline));
    if (answer) {
      if (answer->keep_alive) {
        state->pool.give_back(origin, std::move(transport));
      } else {
        transport->close();
      }
      co_return std::move(answer->response);
    }
    // A connection from the pool may have been closed by the peer just before: that is no failure of the
    // request.
    if (!reused || !was_lost(answer.error(), request.repeatable)) std::rethrow_exception(answer.error());
    reused = false;
    transport.reset();
  }
}

}  // namespace todoke::net

// An HTTP/1.1 client: one deadline for the whole exchange (name, connect, TLS, request, answer), a small pool
// of idle connections, and errors that say whether the peer may have seen the request. Redirects are not
// followed. Not thread-safe: all calls come on the executor that it was made with.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "net/message.hpp"
#include "net/transport.hpp"
#include "net/url.hpp"

namespace todoke::net {

class ClientError : public NetError {
 public:
  enum class Kind {
    connect,       // no connection came about: name, TCP or TLS
    lost_unsent,   // the connection broke before a byte of the request was sent
    lost_sent,     // it broke afterwards, before the answer was complete
    timeout,       // the deadline passed
    bad_response,  // the answer is malformed or over a limit
    held_back,     // may_go said no
  };
  ClientError(Kind kind, bool sent, const std::string& what) : NetError(what), kind_(kind), sent_(sent) {}

  [[nodiscard]] Kind kind() const { return kind_; }
  // False: sending it again can't make it happen twice.
  [[nodiscard]] bool peer_may_have_seen() const { return sent_; }

 private:
  Kind kind_;
  bool sent_;
};

struct ClientRequest {
  std::string method = "GET";
  Url url;
  // Passed on as traceparent, so that the peer's spans join the trace.
  std::optional<TraceContext> trace = std::nullopt;
  Headers headers;  // beside Host, Content-Length, Connection and User-Agent, which are set
  std::string body;
  // The request may be sent a second time: then one that was lost on a connection from the pool is tried
  // again on a new one. Without it that happens only when nothing had been sent.
  bool repeatable = false;
  // Asked when the connection is there and nothing has been sent; false: nothing is.
  std::function<bool()> may_go = {};
};

struct ClientOptions {
  std::size_t body_bytes_max = 4 * 1024 * 1024;  // of an answer
  std::size_t idle_per_host_max = 4;             // connections that are kept for the next request
  std::size_t idle_total_max = 64;               // of all hosts; the oldest goes
  std::chrono::milliseconds idle_timeout{
      30'000};          // shorter than the servers' own, so that few are found dead
  std::string ca_file;  // PEM; empty: the system's authorities
  bool verify_peer = true;
  std::string user_agent = "todoke";
};

class HttpClient {
 public:
  // Throws UserError when the CA file can't be used.
  HttpClient(Executor executor, ClientOptions options = {});
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Any complete answer is a result, whatever its status. Throws ClientError, and std::invalid_argument for a
  // method or header that can't be sent.
  Task<Response> send(ClientRequest request, Deadline deadline);

  [[nodiscard]] std::size_t idle_connections() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // outlives the client while a request is under way
};

}  // namespace todoke::net

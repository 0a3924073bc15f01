// A real HTTP server on loopback with threads of its own, and a raw socket to talk to it byte by byte.
#pragma once

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/metrics.hpp"
#include "base/trace.hpp"
#include "harness/await.hpp"
#include "net/server.hpp"
#include "net/socket.hpp"

namespace todoke::net::test {

using todoke::test::kPatience;

// An event loop on a thread of its own.
class Loop {
 public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  [[nodiscard]] Executor executor() const;
  // Runs the task to its end there; rethrows what it throws.
  void run(Task<void> task);
  // Starts it; the future tells how it ended.
  std::future<void> start(Task<void> task);
  void call(std::function<void()> function);
  // Nothing runs there any more.
  void end();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A handler waits here until the test opens it; `entered` tells the test that it does.
class Gate {
 public:
  explicit Gate(const Executor& executor) : open_(std::make_shared<Signal>(executor)) {}
  Task<void> pass();
  void open() { open_->set_from_anywhere(); }
  void await_entered();

 private:
  std::shared_ptr<Signal> open_;
  std::promise<void> entered_;
};

// For handlers that never answer: they wait here until its end, which is that of its life at the latest. A
// member after the server whose handlers use it, so that they are let go before the server stops.
class Silence {
 public:
  explicit Silence(const Executor& executor) : over_(std::make_shared<Signal>(executor)) {}
  ~Silence() { end(); }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;
  Task<void> keep();
  void end() { over_->set_from_anywhere(); }

 private:
  std::shared_ptr<Signal> over_;
};

class Rig {
 public:
  explicit Rig(std::size_t workers = 1);
  ~Rig();

  std::shared_ptr<Router> router = std::make_shared<Router>();
  ServerConfig config;  // listens on any port of loopback
  metrics::Registry registry;
  Tracer tracer{registry};

  void start();
  // Asks it to stop and returns at once; `await_stopped` waits until run() has returned.
  void ask_to_stop();
  void await_stopped();

  [[nodiscard]] HttpServer& server() { return *server_; }
  [[nodiscard]] std::uint16_t port() const { return server_->port(); }
  [[nodiscard]] Executor worker() const { return workers_.front()->executor(); }
  [[nodiscard]] Loop& loop() { return control_; }
  [[nodiscard]] std::string url(std::string_view target, bool secure = false) const;
  // The value of a series such as `todoke_http_connections{listener="public"}`; 0 when there is none.
  [[nodiscard]] double metric(const std::string& series) const;
  // Waits for the series to have that value: what is counted after the answer was sent.
  [[nodiscard]] bool await_metric(const std::string& series, double value) const;
  [[nodiscard]] bool await_metric_above(const std::string& series, double value) const;

 private:
  std::vector<std::unique_ptr<Loop>> workers_;
  Loop control_;
  std::unique_ptr<HttpServer> server_;
  std::future<void> running_;
  bool stopping_ = false;
};

struct RawResponse {
  int status = 0;
  std::string head;
  std::string body;
  // A header's value; empty when it is missing.
  [[nodiscard]] std::string header(std::string_view name) const;
};

// Blocking, with kPatience as the limit of every call.
class RawClient {
 public:
  // Not connected yet.
  RawClient();
  explicit RawClient(std::uint16_t port) : RawClient() { connect(port); }

  void connect(std::uint16_t port);

  // False: the peer has reset the connection.
  bool send(std::string_view bytes);
  // One response; its body is read by Content-Length (`head_only`: none). Status 0: the connection ended
  // first.
  RawResponse read_response(bool head_only = false);
  // That many bytes; fewer when the connection ended.
  std::string read_exactly(std::size_t bytes);
  // Whether the server closes (or has closed) without sending more.
  bool ended();
  void finish_sending();

  RawResponse ask(std::string_view request) {
    send(request);
    return read_response();
  }

 private:
  bool read_more();
  Fd socket_;
  std::string input_;
};

// "GET <target> HTTP/1.1" with a Host and the given lines (each with its line break).
std::string get(std::string_view target, std::string_view more = "");
std::string post(std::string_view target, std::string_view body, std::string_view more = "");

}  // namespace todoke::net::test

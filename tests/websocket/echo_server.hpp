// The real HTTP server with one WebSocket route at "/", on a loopback port, in a thread of its own.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <thread>

#include "net/server.hpp"
#include "net/websocket.hpp"

namespace todoke::net {

// Sends every message back, as it came.
class EchoHandler : public WsHandler {
 public:
  void on_open(const std::shared_ptr<WsConnection>& connection) override { connection_ = connection; }
  void on_message(WsOpcode opcode, std::string_view payload) override {
    connection_->send(make_frame(opcode, payload));
  }
  void on_close(std::uint16_t, std::string_view) override { connection_ = nullptr; }

 protected:
  std::shared_ptr<WsConnection> connection_;
};

class WsTestServer {
 public:
  using MakeHandler = std::function<std::shared_ptr<WsHandler>()>;

  explicit WsTestServer(
      const WsOptions& options = {},
      const MakeHandler& make_handler = [] { return std::make_shared<EchoHandler>(); });
  // Stops the server and waits for the thread.
  ~WsTestServer();
  WsTestServer(const WsTestServer&) = delete;
  WsTestServer& operator=(const WsTestServer&) = delete;

  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] std::string url() const { return "ws://127.0.0.1:" + std::to_string(port()) + "/"; }
  [[nodiscard]] WsMetrics& metrics();
  [[nodiscard]] metrics::Registry& registry();
  // Runs `work` on the server's thread and waits for it.
  void run(const std::function<void()>& work);
  // Begins the shutdown; does not wait for it.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::thread thread_;
};

// A value that appears on one thread and is waited for on another; at most 20 s, then the test fails with an
// exception.
template <class T>
T await(std::future<T> future) {
  if (future.wait_for(std::chrono::seconds(20)) != std::future_status::ready)
    throw std::runtime_error("nothing came");
  return future.get();
}

}  // namespace todoke::net

#include "echo_server.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "base/log.hpp"

namespace todoke::net {

struct WsTestServer::State {
  State(const WsOptions& options, const MakeHandler& make_handler) : metrics(registry) {
    const auto router = std::make_shared<Router>();
    router->add_websocket("/", [make_handler](const Request&) { return make_handler(); }, options);
    ServerConfig config;
    config.listen = "127.0.0.1:0";
    config.router = router;
    const Executor executor = context.get_executor();
    server = std::make_unique<HttpServer>(config, executor, std::vector<Executor>{executor}, registry);
  }

  metrics::Registry registry;
  WsMetrics metrics;
  asio::io_context context{1};
  std::unique_ptr<HttpServer> server;
  std::promise<void> started;
  bool stopping = false;
};

namespace {

Task<void> serve(HttpServer& server, std::promise<void>& started) {
  co_await server.start();
  started.set_value();
  co_await server.run();
}

}  // namespace

WsTestServer::WsTestServer(const WsOptions& options, const MakeHandler& make_handler)
    : state_(std::make_unique<State>(options, make_handler)) {
  spawn(state_->context.get_executor(), serve(*state_->server, state_->started),
        [](const std::exception_ptr& error) {
          if (error) log::error("test", "the server failed", {{"error", describe(error)}});
        });
  thread_ = std::thread([state = state_.get()] { state->context.run(); });
  await(state_->started.get_future());
}

WsTestServer::~WsTestServer() {
  stop();
  thread_.join();
}

std::uint16_t WsTestServer::port() const {
  return state_->server->port();
}
WsMetrics& WsTestServer::metrics() {
  return state_->metrics;
}
metrics::Registry& WsTestServer::registry() {
  return state_->registry;
}

void WsTestServer::run(const std::function<void()>& work) {
  std::promise<void> done;
  auto future = done.get_future();
  asio::post(state_->context, [&] {
    try {
      work();
      done.set_value();
    } catch (...) {
      done.set_exception(std::current_exception());
    }
  });
  await(std::move(future));
}

void WsTestServer::stop() {
  asio::post(state_->context, [state = state_.get()] {
    if (!std::exchange(state->stopping, true)) state->server->stop();
  });
}

}  // namespace todoke::net

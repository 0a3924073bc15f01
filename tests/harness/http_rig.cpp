#include "harness/http_rig.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdexcept>
#include <sys/socket.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <fmt/format.h>

#include "base/text.hpp"
#include "harness/metric.hpp"

namespace todoke::net::test {

struct Loop::State {
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> guard{context.get_executor()};
  std::thread thread{[this] { context.run(); }};
};

Loop::Loop() : state_(std::make_unique<State>()) {}

Loop::~Loop() {
  end();
  wait_for_blocking_calls();
}

void Loop::end() {
  state_->guard.reset();
  state_->context.stop();
  if (state_->thread.joinable()) state_->thread.join();
}

Executor Loop::executor() const {
  return state_->context.get_executor();
}

std::future<void> Loop::start(Task<void> task) {
  return asio::co_spawn(state_->context, std::move(task), asio::use_future);
}

void Loop::run(Task<void> task) {
  auto future = start(std::move(task));
  if (future.wait_for(kPatience) != std::future_status::ready)
    throw std::runtime_error("the task does not end");
  future.get();
}

void Loop::call(std::function<void()> function) {
  std::promise<void> done;
  asio::post(state_->context, [&] {
    function();
    done.set_value();
  });
  done.get_future().get();
}

Task<void> Gate::pass() {
  auto open = open_;
  entered_.set_value();
  co_await open->wait();
}

void Gate::await_entered() {
  if (entered_.get_future().wait_for(kPatience) != std::future_status::ready) {
    throw std::runtime_error("the handler is not called");
  }
}

Task<void> Silence::keep() {
  auto over = over_;
  co_await over->wait();
}

Rig::Rig(std::size_t workers) {
  for (std::size_t i = 0; i < workers; ++i) workers_.push_back(std::make_unique<Loop>());
  config.listen = "127.0.0.1:0";
}

Rig::~Rig() {
  if (!server_) return;
  ask_to_stop();
  await_stopped();
}

void Rig::start() {
  config.router = router;
  std::vector<Executor> executors;
  for (const auto& worker : workers_) executors.push_back(worker->executor());
  server_ = std::make_unique<HttpServer>(config, control_.executor(), executors, registry, &tracer);
  control_.run(server_->start());
  running_ = control_.start(server_->run());
}

void Rig::ask_to_stop() {
  if (std::exchange(stopping_, true)) return;
  control_.call([this] { server_->stop(); });
}

void Rig::await_stopped() {
  if (!running_.valid()) return;
  if (running_.wait_for(kPatience) != std::future_status::ready)
    std::abort();  // threads would use what is destroyed
  running_.get();
}

std::string Rig::url(std::string_view target, bool secure) const {
  return fmt::format("{}://127.0.0.1:{}{}", secure ? "https" : "http", port(), target);
}

double Rig::metric(const std::string& series) const {
  return todoke::test::metric_of(registry, series);
}

bool Rig::await_metric(const std::string& series, double value) const {
  return todoke::test::await([&] { return metric(series) == value; });
}

bool Rig::await_metric_above(const std::string& series, double value) const {
  return todoke::test::await([&] { return metric(series) > value; });
}

std::string RawResponse::header(std::string_view name) const {
  std::string_view rest = head;
  while (!rest.empty()) {
    auto value = cut_until(rest, '\n');
    const auto field = cut_until(value, ':');
    if (!value.empty() && same_ignoring_case(field, name)) {
      if (value.ends_with('\r')) value.remove_suffix(1);
      return std::string(trimmed(value));
    }
  }
  return {};
}

RawClient::RawClient() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const timeval limit{kPatience.count(), 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

void RawClient::connect(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    throw std::runtime_error("can't connect to the server under test");
  }
}

bool RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto n = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

bool RawClient::read_more() {
  char buffer[16 * 1024];
  const auto n = ::recv(socket_.get(), buffer, sizeof(buffer), 0);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
    throw std::runtime_error("the server sends nothing");
  if (n > 0) input_.append(buffer, static_cast<std::size_t>(n));
  return n > 0;
}

RawResponse RawClient::read_response(bool head_only) {
  RawResponse response;
  std::size_t end = 0;
  while ((end = input_.find("\r\n\r\n")) == std::string::npos) {
    if (!read_more()) return response;
  }
  response.head = input_.substr(0, end + 2);
  input_.erase(0, end + 4);
  const auto status = std::stoi(response.head.substr(std::string_view("HTTP/1.1 ").size(), 3));
  const auto length = response.header("Content-Length");
  const std::size_t size = head_only || length.empty() ? 0 : std::stoul(length);
  while (input_.size() < size) {
    if (!read_more()) return response;
  }
  response.status = status;
  response.body = input_.substr(0, size);
  input_.erase(0, size);
  return response;
}

std::string RawClient::read_exactly(std::size_t bytes) {
  while (input_.size() < bytes && read_more()) {
  }
  auto result = input_.substr(0, bytes);
  input_.erase(0, result.size());
  return result;
}

bool RawClient::ended() {
  return input_.empty() && !read_more();
}

void RawClient::finish_sending() {
  ::shutdown(socket_.get(), SHUT_WR);
}

std::string get(std::string_view target, std::string_view more) {
  return fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\n{}\r\n", target, more);
}

std::string post(std::string_view target, std::string_view body, std::string_view more) {
  return fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n{}\r\n{}", target,
                     body.size(), more, body);
}

}  // namespace todoke::net::test

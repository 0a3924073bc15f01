// What sharing a frame is worth: one server, 500 subscribers, messages of 400 bytes delivered to all, in
// bursts. Compared: a frame for each receiver, one frame for all, and one frame for all with bursts that
// share a write.
#include <arpa/inet.h>
#include <atomic>
#include <cstdio>
#include <netinet/in.h>
#include <string>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "base/log.hpp"
#include "net/server.hpp"
#include "net/websocket.hpp"

namespace todoke::bench {
namespace {

constexpr int kSubscribers = 500;
constexpr std::chrono::seconds kEach(3);
const std::string kPayload(400, 'x');
constexpr std::size_t kFrameBytes = 404;  // 4 bytes of header

struct Subscribers {
  std::vector<std::shared_ptr<net::WsConnection>> all;
};

class Subscriber final : public net::WsHandler {
 public:
  explicit Subscriber(Subscribers& subscribers) : subscribers_(subscribers) {}
  void on_open(const std::shared_ptr<net::WsConnection>& connection) override {
    subscribers_.all.push_back(connection);
  }
  void on_message(net::WsOpcode /*opcode*/, std::string_view /*payload*/) override {}
  void on_close(std::uint16_t /*code*/, std::string_view /*reason*/) override {}

 private:
  Subscribers& subscribers_;
};

// Connects the subscribers and counts the bytes that they receive, on one thread.
class Readers {
 public:
  explicit Readers(std::uint16_t port) : epoll_(epoll_create1(0)) {
    for (int i = 0; i < kSubscribers; ++i) connect_one(port);
    thread_ = std::thread([this] { read_all(); });
  }
  ~Readers() {
    stop_ = true;
    thread_.join();
    for (const int fd : fds_) ::close(fd);
    ::close(epoll_);
  }
  Readers(const Readers&) = delete;
  Readers& operator=(const Readers&) = delete;
  std::atomic<std::uint64_t> bytes{0};

 private:
  void connect_one(std::uint16_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("connect");
    const std::string hello =
        "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    if (::write(fd, hello.data(), hello.size()) < 0) throw std::runtime_error("write");
    std::string answer;
    while (!answer.ends_with("\r\n\r\n")) {
      char c = 0;
      if (::read(fd, &c, 1) != 1) throw std::runtime_error("handshake");
      answer.push_back(c);
    }
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
    fds_.push_back(fd);
  }

  void read_all() {
    std::vector<char> buffer(256 * 1024);
    std::vector<epoll_event> events(kSubscribers);
    while (!stop_) {
      const int n = epoll_wait(epoll_, events.data(), kSubscribers, 20);
      for (int i = 0; i < n; ++i) {
        const auto got =
            ::recv(events[static_cast<std::size_t>(i)].data.fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (got > 0) bytes += static_cast<std::uint64_t>(got);
      }
    }
  }

  int epoll_;
  std::vector<int> fds_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// Deliveries/s when `burst` messages are published at once, each wave when the one before has arrived.
double measure(asio::io_context& io, Subscribers& subscribers, Readers& readers, int burst, bool shared) {
  const auto before = readers.bytes.load();
  std::uint64_t waves = 0;
  const auto began = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - began < kEach) {
    asio::post(io, [&, burst, shared] {
      for (int i = 0; i < burst; ++i) {
        const auto frame = net::make_frame(net::WsOpcode::text, kPayload);
        for (const auto& connection : subscribers.all) {
          connection->send(shared ? frame : net::make_frame(net::WsOpcode::text, kPayload));
        }
      }
    });
    ++waves;
    const auto want = before + waves * static_cast<std::uint64_t>(burst) * kSubscribers * kFrameBytes;
    while (readers.bytes < want) std::this_thread::yield();
  }
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return static_cast<double>(readers.bytes - before) / kFrameBytes / seconds;
}

int run() {
  log::configure(log::Level::error, log::Format::human);
  asio::io_context io;
  metrics::Registry registry;
  Subscribers subscribers;
  auto router = std::make_shared<net::Router>();
  router->add_websocket("/", [&](const net::Request&) { return std::make_shared<Subscriber>(subscribers); });
  net::ServerConfig config;
  config.listen = "127.0.0.1:0";
  config.router = router;
  net::HttpServer server(config, io.get_executor(), {io.get_executor()}, registry);
  std::atomic<bool> started{false};
  const auto serve = [](net::HttpServer& s, std::atomic<bool>& flag) -> Task<void> {
    co_await s.start();
    flag = true;
    co_await s.run();
  };
  asio::co_spawn(io, serve(server, started), asio::detached);
  std::thread loop([&] { io.run(); });
  while (!started) std::this_thread::yield();
  {
    Readers readers(server.port());
    const auto report = [](const char* what, double rate, double base) {
      std::fputs(fmt::format("{:<42} {:>9.0f} deliveries/s {:>5.1f}x\n", what, rate, rate / base).c_str(),
                 stdout);
    };
    const double base = measure(io, subscribers, readers, 1, false);
    report("a frame for each receiver, 1 at a time", base, base);
    report("one frame for all, 1 at a time", measure(io, subscribers, readers, 1, true), base);
    report("a frame for each receiver, bursts of 32", measure(io, subscribers, readers, 32, false), base);
    report("one frame for all, bursts of 32", measure(io, subscribers, readers, 32, true), base);
  }
  asio::post(io, [&] { server.stop(); });
  loop.join();
  return 0;
}

}  // namespace
}  // namespace todoke::bench

int main() {
  return todoke::bench::run();
}

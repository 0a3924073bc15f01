#include "orders_load/http_load.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdexcept>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace todoke::bench {
namespace {

using Steady = std::chrono::steady_clock;

constexpr int kPatienceMs = 30'000;

}  // namespace

HttpConnection::HttpConnection(const std::string& address) {
  const auto colon = address.rfind(':');
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.substr(0, colon).c_str(), address.substr(colon + 1).c_str(), &hints, &found) != 0)
    throw std::runtime_error("no such address: " + address);
  fd_ = socket(found->ai_family, found->ai_socktype, 0);
  const int refused = fd_ < 0 ? -1 : connect(fd_, found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  if (refused != 0) throw std::runtime_error("nobody answers at " + address);
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

HttpConnection::~HttpConnection() {
  if (fd_ >= 0) close(fd_);
}

HttpConnection::HttpConnection(HttpConnection&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), in_(std::move(other.in_)), sent_at_(other.sent_at_) {}

void HttpConnection::send_request(std::string_view text) {
  sent_at_ = Steady::now();
  if (send(fd_, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size()))
    throw std::runtime_error("the server does not take a request");
  in_.clear();
}

int HttpConnection::read_answer() {
  char block[4'096];
  const auto got = recv(fd_, block, sizeof block, 0);
  if (got <= 0) throw std::runtime_error("the server has hung up");
  in_.append(block, static_cast<std::size_t>(got));
  const auto end = in_.find("\r\n\r\n");
  if (end == std::string::npos) return 0;
  const auto length = number_after("\r\nContent-Length: ");
  if (in_.size() < end + 4 + static_cast<std::size_t>(length)) return 0;
  return number_after("HTTP/1.1 ");
}

int HttpConnection::ask(std::string_view text) {
  send_request(text);
  pollfd polled{fd_, POLLIN, 0};
  for (;;) {
    if (poll(&polled, 1, kPatienceMs) <= 0) throw std::runtime_error("no answer within 30 s");
    if (const int status = read_answer(); status != 0) return status;
  }
}

int HttpConnection::number_after(std::string_view mark) const {
  const auto at = in_.find(mark);
  int number = 0;
  if (at == std::string::npos) return number;
  std::from_chars(in_.data() + at + mark.size(), in_.data() + in_.size(), number);
  return number;
}

HttpLoadResult post_all(const std::string& address, std::size_t connections, std::size_t count,
                        const std::function<std::string(std::size_t)>& request, int expected_status) {
  std::vector<HttpConnection> open;
  for (std::size_t i = 0; i < connections; ++i) open.emplace_back(address);
  std::vector<pollfd> polled;
  for (const auto& connection : open) polled.push_back({connection.fd(), POLLIN, 0});
  HttpLoadResult result;
  std::size_t sent = 0;
  const auto began = Steady::now();
  for (auto& connection : open) connection.send_request(request(sent++));
  while (result.answer_ms.size() < count) {
    if (poll(polled.data(), polled.size(), kPatienceMs) <= 0)
      throw std::runtime_error("no answer within 30 s");
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (polled[i].revents == 0) continue;
      const int status = open[i].read_answer();
      if (status == 0) continue;
      if (status != expected_status) throw std::runtime_error("unexpected answer: " + open[i].answer());
      result.answer_ms.push_back(
          std::chrono::duration<double, std::milli>(Steady::now() - open[i].sent_at()).count());
      if (sent < count) open[i].send_request(request(sent++));
    }
  }
  result.seconds = std::chrono::duration<double>(Steady::now() - began).count();
  std::sort(result.answer_ms.begin(), result.answer_ms.end());
  return result;
}

}  // namespace todoke::bench

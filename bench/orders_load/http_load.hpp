// POSTs over plain HTTP/1.1 connections, each of which waits for its answer before it sends again. One
// thread, no parsing beyond the status and the length: the client takes little of the processor that it
// shares with the server.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace todoke::bench {

// One connection. Blocks while it connects; everything throws std::runtime_error when the server hangs up.
class HttpConnection {
 public:
  // `address` is host:port.
  explicit HttpConnection(const std::string& address);
  ~HttpConnection();
  HttpConnection(HttpConnection&& other) noexcept;
  HttpConnection& operator=(HttpConnection&&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] std::chrono::steady_clock::time_point sent_at() const { return sent_at_; }

  // A request is smaller than the socket's buffer: it goes out whole.
  void send_request(std::string_view text);
  // Reads once. The status, once the answer has come whole; 0 before.
  int read_answer();
  // The same until the answer has come whole.
  int ask(std::string_view text);
  [[nodiscard]] const std::string& answer() const { return in_; }

 private:
  [[nodiscard]] int number_after(std::string_view mark) const;

  int fd_ = -1;
  std::string in_;
  std::chrono::steady_clock::time_point sent_at_;
};

struct HttpLoadResult {
  double seconds = 0;
  std::vector<double> answer_ms;  // sorted
};

// `address` is host:port; `request` gives the whole text of request number n. Throws std::runtime_error for
// an answer of another status, and when the server hangs up.
HttpLoadResult post_all(const std::string& address, std::size_t connections, std::size_t count,
                        const std::function<std::string(std::size_t)>& request, int expected_status);

}  // namespace todoke::bench

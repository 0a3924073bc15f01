// A WebSocket connection of the load generator: a plain TCP socket with buffers of its own. No TLS and, as
// a rule, no compression, so that the client takes little of the processor that it shares with the relay:
// about 1 us an event, sending and reading its OK.
//
// Connecting blocks; after that nothing does. Everything else is driven by a Loop (loop.hpp).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "relay_load/wire.hpp"

namespace todoke::bench {

class Connection {
 public:
  // `url` is ws://host[:port][/path]. Throws UserError for any other, std::runtime_error when no WebSocket
  // came about within kConnectMax.
  // `offers_deflate`: permessage-deflate, which the relay may take or not.
  explicit Connection(const std::string& url, bool offers_deflate = false);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  static constexpr std::chrono::seconds kConnectMax{30};

  // Queues bytes that are frames already; the Loop writes them at the end of its turn, in one call with what
  // else was queued. The queue holds what a case sends at most; it has no limit of its own.
  void queue(std::string_view frames) { out_.append(frames); }

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] bool has_output() const { return out_at_ < out_.size(); }

  // Writes what the socket takes now. Throws ConnectionEnded.
  void write();
  // Reads once and hands every complete message to `on_message`. Throws ConnectionEnded.
  template <class OnMessage>
  void read(OnMessage&& on_message) {
    fill();
    while (const auto message = next_message()) on_message(*message);
    compact();
  }

 private:
  void open(const std::string& url);
  std::string_view plain(const Frame& frame);
  void handshake(const std::string& authority, const std::string& target);
  void fill();
  std::optional<std::string_view> next_message();
  void compact();

  int fd_ = -1;
  std::string out_;
  std::size_t out_at_ = 0;
  std::string in_;  // a block of memory; [in_at_, in_end_) has come and is not used up
  std::size_t in_at_ = 0;
  std::size_t in_end_ = 0;
  std::string fragments_;  // of a message that comes in several frames
  bool fragmented_ = false;
  bool deflate_ = false;
  std::string inflated_;
  bool give_fragments_ = false;
};

// The relay closed or broke the connection. Says how, in words for the report.
class ConnectionEnded : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace todoke::bench

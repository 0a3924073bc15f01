// A WebSocket client without mercy: writes exactly the bytes that it is given and shows exactly the frames
// that come back. Blocking; every wait ends after 20 s with an exception, so a test that hangs fails.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/socket.hpp"

namespace todoke::net {

struct RawFrame {
  bool fin = true;
  std::uint8_t rsv = 0;  // RSV1 is 4, RSV2 is 2, RSV3 is 1
  std::uint8_t opcode = 1;
  std::string payload;
  bool operator==(const RawFrame&) const = default;
};

inline constexpr std::uint8_t kContinuation = 0, kText = 1, kBinary = 2, kClose = 8, kPing = 9, kPong = 10;

RawFrame text(std::string payload);
RawFrame binary(std::string payload);
RawFrame ping(std::string payload);
RawFrame pong(std::string payload);
RawFrame close_with(std::uint16_t code, std::string_view reason = "");
// The code of a close frame: 1005 without one, 0 for other frames.
std::uint16_t code_of(const RawFrame& frame);
// Shows as "text 'abc'" and the like when an expectation fails.
void PrintTo(const RawFrame& frame, std::ostream* out);

enum class Mask { with_key, none };
// The bytes of a frame as a client sends it. `length_form` 0 is the shortest; 2 and 8 force so many bytes.
std::string encode(const RawFrame& frame, Mask mask = Mask::with_key, int length_form = 0);

class RawClient {
 public:
  // Connects and, unless told otherwise, shakes hands. `extensions` goes into Sec-WebSocket-Extensions.
  explicit RawClient(std::uint16_t port, std::string_view extensions = "");
  struct NoHandshake {};
  RawClient(std::uint16_t port, NoHandshake);

  // The answer to a request, up to and with its empty line.
  std::string request(std::string_view bytes);
  [[nodiscard]] const std::string& handshake_answer() const { return answer_; }

  void write(std::string_view bytes);
  // In pieces of `size` bytes, each in a segment of its own as far as TCP allows.
  void write_chopped(std::string_view bytes, std::size_t size);
  void send(const RawFrame& frame) { write(encode(frame)); }
  // Ends the sending side.
  void finish();

  // The next frame; nothing at the end of the stream. Throws when the server masks, or uses more bytes for a
  // length than needed.
  std::optional<RawFrame> read();
  // Everything until the end of the stream.
  std::vector<RawFrame> read_all();
  // Takes nothing from the socket until something is there to be taken.
  void wait_readable();

  [[nodiscard]] int fd() const { return socket_.get(); }

 private:
  bool fill();
  std::string take(std::size_t size);

  Fd socket_;
  std::string buffer_;
  std::string answer_;
};

// Connects, writes the frames, and gives what comes back until the server has ended the connection.
std::vector<RawFrame> exchange(std::uint16_t port, const std::vector<RawFrame>& frames,
                               std::string_view extensions = "");

inline constexpr std::string_view kHandshake =
    "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n";

}  // namespace todoke::net

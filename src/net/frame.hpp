// Frames as they go over the wire (RFC 6455, 5.2).
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "net/websocket.hpp"

namespace todoke::net {

// Header and payload in one string. The first connection that asks for the compressed form makes it; when
// none asks, it is never made. Both forms stay as long as the frame, so a shared frame costs its payload once
// or twice.
class SharedFrame {
 public:
  // From server to client: not masked.
  SharedFrame(WsOpcode opcode, std::string_view payload);

  [[nodiscard]] std::string_view plain() const { return plain_; }
  // The plain form where compression would not make it shorter.
  [[nodiscard]] std::string_view compressed() const;
  [[nodiscard]] WsOpcode opcode() const { return opcode_; }
  [[nodiscard]] std::string_view payload() const { return std::string_view(plain_).substr(payload_at_); }

 private:
  WsOpcode opcode_;
  std::size_t payload_at_;
  std::string plain_;
  mutable std::once_flag compressing_;
  mutable std::string compressed_;
};

enum class WsControl : std::uint8_t { close = 8, ping = 9, pong = 10 };
inline constexpr std::size_t kControlBytesMax = 125;

enum class Masking { none, random };

// Appends one whole frame; `first_byte` holds FIN, the reserved bits and the opcode. Masking::random is for
// clients; its key comes from the operating system's generator (RFC 6455, 10.3).
void append_frame(std::string& out, std::uint8_t first_byte, std::string_view payload, Masking masking);

inline constexpr std::uint8_t kFinBit = 0x80;
inline constexpr std::uint8_t kCompressedBit = 0x40;

std::string control_frame(WsControl opcode, std::string_view payload, Masking masking);
// A close frame with a code and a reason (cut at 123 bytes, between two code points). Code 0: an empty one.
std::string close_frame(std::uint16_t code, std::string_view reason, Masking masking);
// A data frame of a client. With `deflate` it is compressed if that makes it shorter.
std::string masked_frame(WsOpcode opcode, std::string_view payload, bool deflate);

// Whether a close frame may carry the code: the RFC's own, those registered since (1012 to 1014), and 3000 to
// 4999.
bool is_close_code(std::uint16_t code);

}  // namespace todoke::net

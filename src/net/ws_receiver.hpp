// The receiving half of a WebSocket: bytes in, events out. No I/O and no clock, so that a fuzzer can
// drive it.
//
// libwslay's frame layer reads headers, lengths and masks. This class decides what a sequence of frames
// means. libwslay's event layer can't: it checks the reason of a close frame wrongly when the frame arrives
// in pieces, keeps a block of memory for each fragment, refuses the codes 1012 to 1014, and answers through a
// queue of its own.
//
// Costs 0.4 KiB for each connection, and 4 KiB of wslay's while a frame is under way; a message that arrives
// in one piece is handed on without being copied. Beyond that it holds at most one message: its limit, and
// the same again while a compressed one is inflated. The headers of a message's frames have the same limit,
// so that frames with nothing in them can't go on for ever.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/utf8.hpp"
#include "net/frame.hpp"
#include "net/websocket.hpp"

struct wslay_frame_context;
struct wslay_frame_iocb;

namespace todoke::net {

enum class WsRole { server, client };

namespace close_code {
inline constexpr std::uint16_t normal = 1000;
inline constexpr std::uint16_t going_away = 1001;
inline constexpr std::uint16_t service_restart = 1012;
inline constexpr std::uint16_t protocol_error = 1002;
inline constexpr std::uint16_t none_received = 1005;
inline constexpr std::uint16_t abnormal = 1006;
inline constexpr std::uint16_t invalid_data = 1007;
inline constexpr std::uint16_t policy = 1008;
inline constexpr std::uint16_t too_big = 1009;
inline constexpr std::uint16_t internal_error = 1011;
}  // namespace close_code

struct WsEvent {
  enum class Kind {
    starved,  // all bytes are used up
    message,
    ping,
    pong,
    close,   // nothing follows; `code` is 1005 when the frame had none
    failed,  // the peer broke the protocol: close with `code` and `payload` as the reason; nothing follows
  };
  Kind kind = Kind::starved;
  WsOpcode opcode = WsOpcode::text;
  std::uint16_t code = 0;
  std::string_view payload;  // valid until the next call of next()
};

class WsReceiver {
 public:
  WsReceiver(WsRole role, WsAgreement agreement, std::size_t message_bytes_max);
  ~WsReceiver();
  WsReceiver(const WsReceiver&) = delete;
  WsReceiver& operator=(const WsReceiver&) = delete;

  // Only after next() was starved. The bytes must stay where they are until it is starved again.
  void give(std::string_view bytes) { input_ = bytes; }
  WsEvent next();
  // A message that next() gave was handled: gives its memory back.
  void forget_message();
  // The connection ends: gives back what has come of a message, and next() stays starved.
  void abandon();
  // What is kept of a message, until the rest of it comes or it is forgotten.
  [[nodiscard]] std::size_t held_bytes() const;
  // After next() was starved: whether a message or a frame has begun and not ended.
  [[nodiscard]] bool is_inside() const { return in_message_ || in_frame_ || header_bytes_ > 0; }

 private:
  struct FreeContext {
    void operator()(wslay_frame_context* context) const;
  };

  void make_context();
  long take_input(std::uint8_t* into, std::size_t size);
  // Both give `starved` when there is nothing to tell yet.
  WsEvent begin_frame(const wslay_frame_iocb& frame);
  WsEvent on_data(const wslay_frame_iocb& frame, std::string_view piece);
  WsEvent on_control(const wslay_frame_iocb& frame, std::string_view piece);
  WsEvent finish_message(std::string_view payload);
  WsEvent finish_close();
  WsEvent fail(std::uint16_t code, std::string_view reason);

  WsRole role_;
  bool deflate_;
  std::size_t message_bytes_max_;
  std::unique_ptr<wslay_frame_context, FreeContext> context_;  // none between messages
  std::string_view input_;

  bool ended_ = false;
  bool in_frame_ = false;
  std::uint64_t header_bytes_ = 0;  // taken, and of no frame whose payload has begun
  std::uint64_t frame_bytes_left_ = 0;

  bool in_message_ = false;  // a data frame without FIN was received
  bool message_done_ = false;
  bool compressed_ = false;
  WsOpcode opcode_ = WsOpcode::text;
  std::uint64_t message_bytes_ = 0;         // announced by the frames so far
  std::uint64_t message_header_bytes_ = 0;  // of these frames
  std::string message_;                     // pieces that had to be kept, as received
  std::string inflated_;
  Utf8Check utf8_;

  std::array<char, kControlBytesMax> control_;
  std::size_t control_bytes_ = 0;
};

}  // namespace todoke::net

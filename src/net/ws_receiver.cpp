#include "net/ws_receiver.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include <wslay/wslay.h>

#include "net/deflate.hpp"

namespace todoke::net {

namespace {

// A buffer above this size is given back after its message, so that an idle connection stays small.
constexpr std::size_t kKeptBytesMax = 1024;

// Deflate makes data that it can't compress longer: 5 bytes for each stored block of at least 16 KiB, and a
// few at the end.
constexpr std::uint64_t compressed_bytes_max(std::size_t message_bytes_max) {
  return message_bytes_max + message_bytes_max / 1024 + 64;
}

// wslay refuses lengths that are written longer than they must be.
std::size_t header_size(const wslay_frame_iocb& frame) {
  constexpr std::size_t kShort = 2;
  constexpr std::size_t kMask = 4;
  const std::size_t length = frame.payload_length < 126 ? 0 : frame.payload_length < 65'536 ? 2 : 8;
  return kShort + length + (frame.mask != 0 ? kMask : 0);
}

bool is_control(std::uint8_t opcode) {
  return (opcode & 8) != 0;
}

void release_if_large(std::string& text) {
  text.clear();
  if (text.capacity() > kKeptBytesMax) std::string().swap(text);
}

}  // namespace

void WsReceiver::FreeContext::operator()(wslay_frame_context* context) const {
  wslay_frame_context_free(context);
}

WsReceiver::WsReceiver(WsRole role, WsAgreement agreement, std::size_t message_bytes_max)
    : role_(role), deflate_(agreement.deflate), message_bytes_max_(message_bytes_max) {}

WsReceiver::~WsReceiver() = default;

void WsReceiver::make_context() {
  wslay_frame_callbacks callbacks{};
  callbacks.recv_callback = [](std::uint8_t* into, std::size_t size, int, void* self) -> ssize_t {
    return static_cast<WsReceiver*>(self)->take_input(into, size);
  };
  wslay_frame_context_ptr context = nullptr;
  if (wslay_frame_context_init(&context, &callbacks, this) != 0) throw std::bad_alloc();
  context_.reset(context);
}

long WsReceiver::take_input(std::uint8_t* into, std::size_t size) {
  const std::size_t taken = std::min(size, input_.size());
  if (taken == 0) return -1;
  std::memcpy(into, input_.data(), taken);
  input_.remove_prefix(taken);
  header_bytes_ += taken;
  return static_cast<long>(taken);
}

WsEvent WsReceiver::next() {
  if (message_done_) forget_message();
  if (!context_ && !input_.empty()) make_context();
  while (!ended_ && context_) {
    wslay_frame_iocb frame{};
    const ssize_t result = wslay_frame_recv(context_.get(), &frame);
    if (result == WSLAY_ERR_WANT_READ) {
      // It asks for more after each copy into its buffer, also while there still is input.
      if (input_.empty()) break;
      continue;
    }
    if (result < 0) return fail(close_code::protocol_error, "malformed frame header");

    if (!in_frame_) {
      const WsEvent problem = begin_frame(frame);
      if (problem.kind != WsEvent::Kind::starved) return problem;
      in_frame_ = true;
      header_bytes_ -= header_size(frame);
      frame_bytes_left_ = frame.payload_length;
    }
    const std::string_view piece(reinterpret_cast<const char*>(frame.data), frame.data_length);
    frame_bytes_left_ -= piece.size();
    header_bytes_ -= piece.size();
    if (frame_bytes_left_ == 0) in_frame_ = false;
    const WsEvent event = is_control(frame.opcode) ? on_control(frame, piece) : on_data(frame, piece);
    if (event.kind != WsEvent::Kind::starved) return event;
  }
  if (!is_inside()) context_.reset();
  return {};
}

WsEvent WsReceiver::begin_frame(const wslay_frame_iocb& frame) {
  const bool masked = frame.mask != 0;
  if (masked != (role_ == WsRole::server)) {
    return fail(close_code::protocol_error, masked ? "a server must not mask" : "a client must mask");
  }
  const bool starts_message = frame.opcode == WSLAY_TEXT_FRAME || frame.opcode == WSLAY_BINARY_FRAME;
  const bool compression_allowed = deflate_ && starts_message;
  if (frame.rsv != WSLAY_RSV_NONE && !(frame.rsv == WSLAY_RSV1_BIT && compression_allowed)) {
    return fail(close_code::protocol_error, "reserved bits");
  }
  if (is_control(frame.opcode)) {
    if (frame.opcode > WSLAY_PONG) return fail(close_code::protocol_error, "unknown opcode");
    control_bytes_ = 0;
    return {};
  }
  if (frame.opcode == WSLAY_CONTINUATION_FRAME) {
    if (!in_message_) return fail(close_code::protocol_error, "continuation of no message");
  } else if (!starts_message) {
    return fail(close_code::protocol_error, "unknown opcode");
  } else if (in_message_) {
    return fail(close_code::protocol_error, "a message inside another");
  } else {
    in_message_ = true;
    opcode_ = static_cast<WsOpcode>(frame.opcode);
    compressed_ = frame.rsv == WSLAY_RSV1_BIT;
    message_bytes_ = message_header_bytes_ = 0;
    utf8_.reset();
  }
  const std::uint64_t most = compressed_ ? compressed_bytes_max(message_bytes_max_) : message_bytes_max_;
  if (frame.payload_length > most - message_bytes_) return fail(close_code::too_big, "message too big");
  message_bytes_ += frame.payload_length;
  message_header_bytes_ += header_size(frame);
  if (message_header_bytes_ > most) return fail(close_code::too_big, "message of too many frames");
  return {};
}

WsEvent WsReceiver::on_data(const wslay_frame_iocb& frame, std::string_view piece) {
  if (opcode_ == WsOpcode::text && !compressed_ && !utf8_.feed(piece)) {
    return fail(close_code::invalid_data, "text is not UTF-8");
  }
  const bool last = !in_frame_ && frame.fin != 0;
  if (last && message_.empty()) return finish_message(piece);
  message_.append(piece);
  return last ? finish_message(message_) : WsEvent();
}

WsEvent WsReceiver::finish_message(std::string_view payload) {
  if (compressed_) {
    switch (inflate_message(payload, message_bytes_max_, inflated_)) {
      case Inflated::ok:
        break;
      case Inflated::too_big:
        return fail(close_code::too_big, "message too big");
      case Inflated::invalid:
        return fail(close_code::invalid_data, "malformed compressed data");
    }
    payload = inflated_;
    if (opcode_ == WsOpcode::text) utf8_.feed(payload);
  }
  if (opcode_ == WsOpcode::text && !utf8_.complete())
    return fail(close_code::invalid_data, "text is not UTF-8");
  in_message_ = false;
  message_done_ = true;
  return {WsEvent::Kind::message, opcode_, 0, payload};
}

WsEvent WsReceiver::on_control(const wslay_frame_iocb& frame, std::string_view piece) {
  // wslay has refused control frames of more than 125 bytes, and those without FIN.
  std::copy(piece.begin(), piece.end(), control_.begin() + static_cast<std::ptrdiff_t>(control_bytes_));
  control_bytes_ += piece.size();
  if (in_frame_) return {};
  const std::string_view payload(control_.data(), control_bytes_);
  if (frame.opcode == WSLAY_PING) return {WsEvent::Kind::ping, WsOpcode::binary, 0, payload};
  if (frame.opcode == WSLAY_PONG) return {WsEvent::Kind::pong, WsOpcode::binary, 0, payload};
  return finish_close();
}

WsEvent WsReceiver::finish_close() {
  const std::string_view payload(control_.data(), control_bytes_);
  if (payload.size() == 1) return fail(close_code::protocol_error, "malformed close frame");
  ended_ = true;
  if (payload.empty()) return {WsEvent::Kind::close, WsOpcode::binary, close_code::none_received, {}};
  const auto code = static_cast<std::uint16_t>(static_cast<std::uint8_t>(payload[0]) << 8 |
                                               static_cast<std::uint8_t>(payload[1]));
  if (!is_close_code(code)) return fail(close_code::protocol_error, "invalid close code");
  const std::string_view reason = payload.substr(2);
  if (!is_utf8(reason)) return fail(close_code::invalid_data, "reason is not UTF-8");
  return {WsEvent::Kind::close, WsOpcode::binary, code, reason};
}

WsEvent WsReceiver::fail(std::uint16_t code, std::string_view reason) {
  ended_ = true;
  return {WsEvent::Kind::failed, WsOpcode::binary, code, reason};
}

void WsReceiver::forget_message() {
  message_done_ = false;
  release_if_large(message_);
  release_if_large(inflated_);
}

void WsReceiver::abandon() {
  ended_ = true;
  in_message_ = in_frame_ = false;
  header_bytes_ = 0;
  forget_message();
}

std::size_t WsReceiver::held_bytes() const {
  const auto large = [](const std::string& text) {
    return text.capacity() > kKeptBytesMax ? text.capacity() : 0;
  };
  return large(message_) + large(inflated_);
}

}  // namespace todoke::net

#include "net/frame.hpp"

#include <array>
#include <stdexcept>

#include "base/bytes.hpp"
#include "base/utf8.hpp"
#include "net/deflate.hpp"

namespace todoke::net {

namespace {

constexpr std::uint8_t kMaskBit = 0x80;
constexpr std::size_t kFrameHeaderBytesMax = 14;
constexpr std::size_t kCloseReasonBytesMax = kControlBytesMax - 2;

void append_length(std::string& out, std::size_t size, std::uint8_t mask_bit) {
  const auto big_endian = [&out, size](int bytes) {
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
      out.push_back(static_cast<char>(size >> shift & 0xFF));
  };
  if (size <= 125) {
    out.push_back(static_cast<char>(mask_bit | size));
  } else if (size <= 0xFFFF) {
    out.push_back(static_cast<char>(mask_bit | 126));
    big_endian(2);
  } else {
    out.push_back(static_cast<char>(mask_bit | 127));
    big_endian(8);
  }
}

std::uint8_t data_byte(WsOpcode opcode) {
  return static_cast<std::uint8_t>(kFinBit | static_cast<std::uint8_t>(opcode));
}

}  // namespace

void append_frame(std::string& out, std::uint8_t first_byte, std::string_view payload, Masking masking) {
  out.reserve(out.size() + kFrameHeaderBytesMax + payload.size());
  out.push_back(static_cast<char>(first_byte));
  if (masking == Masking::none) {
    append_length(out, payload.size(), 0);
    out.append(payload);
    return;
  }
  append_length(out, payload.size(), kMaskBit);
  std::array<std::uint8_t, 4> key;
  random_bytes(key);
  for (const std::uint8_t byte : key) out.push_back(static_cast<char>(byte));
  for (std::size_t i = 0; i < payload.size(); ++i) {
    out.push_back(static_cast<char>(static_cast<std::uint8_t>(payload[i]) ^ key[i % key.size()]));
  }
}

SharedFrame::SharedFrame(WsOpcode opcode, std::string_view payload) : opcode_(opcode) {
  append_frame(plain_, data_byte(opcode), payload, Masking::none);
  payload_at_ = plain_.size() - payload.size();
}

std::string_view SharedFrame::compressed() const {
  std::call_once(compressing_, [this] {
    const std::string smaller = deflate_message(payload());
    if (smaller.size() >= payload().size()) return;
    append_frame(compressed_, data_byte(opcode_) | kCompressedBit, smaller, Masking::none);
    compressed_.shrink_to_fit();
  });
  return compressed_.empty() ? plain() : std::string_view(compressed_);
}

FramePtr make_frame(WsOpcode opcode, std::string_view payload) {
  return std::make_shared<const SharedFrame>(opcode, payload);
}

std::string control_frame(WsControl opcode, std::string_view payload, Masking masking) {
  if (payload.size() > kControlBytesMax)
    throw std::length_error("the payload of a control frame is too long");
  std::string frame;
  append_frame(frame, static_cast<std::uint8_t>(kFinBit | static_cast<std::uint8_t>(opcode)), payload,
               masking);
  return frame;
}

std::string close_frame(std::uint16_t code, std::string_view reason, Masking masking) {
  if (code == 0) return control_frame(WsControl::close, {}, masking);
  reason = cut_between_characters(reason, kCloseReasonBytesMax);
  std::string payload;
  payload.push_back(static_cast<char>(code >> 8));
  payload.push_back(static_cast<char>(code & 0xFF));
  payload.append(reason);
  return control_frame(WsControl::close, payload, masking);
}

std::string masked_frame(WsOpcode opcode, std::string_view payload, bool deflate) {
  std::string frame;
  if (deflate) {
    const std::string smaller = deflate_message(payload);
    if (smaller.size() < payload.size()) {
      append_frame(frame, data_byte(opcode) | kCompressedBit, smaller, Masking::random);
      return frame;
    }
  }
  append_frame(frame, data_byte(opcode), payload, Masking::random);
  return frame;
}

bool is_close_code(std::uint16_t code) {
  if (code >= 3000 && code <= 4999) return true;
  return code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006;
}

}  // namespace todoke::net

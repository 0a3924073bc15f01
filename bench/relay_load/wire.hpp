// What goes over the socket: frames of a client, and the relay's replies as far as a load generator must
// understand them. Both cost well under a microsecond an event: frames carry a zero mask (legal, and the
// payload stays as it is), replies are told apart by their first bytes and never parsed as JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace todoke::bench {

enum class Opcode : std::uint8_t { continuation = 0, text = 1, binary = 2, close = 8, ping = 9, pong = 10 };

// Appends one final, masked frame.
void append_frame(std::string& out, Opcode opcode, std::string_view payload);
std::string text_frame(std::string_view payload);

struct Frame {
  Opcode opcode;
  bool final;
  bool compressed;
  std::string_view payload;
  std::size_t size;  // with its header
};

// Larger frames than any page of events that a relay answers in one message: a length beyond it is taken for
// a stream that has gone wrong.
inline constexpr std::uint64_t kFrameBytesMax = 16 * 1024 * 1024;

// The frame at the start of `bytes`; nothing while it is incomplete. Throws std::runtime_error for what no
// server may send.
std::optional<Frame> first_frame(std::string_view bytes, bool may_compress = false);

enum class ReplyType : std::uint8_t { ok, event, eose, closed, notice, auth, other };

// A message of a relay. The views point into the message.
struct Reply {
  ReplyType type = ReplyType::other;
  std::string_view name;  // the event id of an OK, the subscription of EVENT, EOSE and CLOSED; else the text
  bool accepted = false;  // of an OK
  std::string_view text;  // the reason in an OK or CLOSED; the event in an EVENT; the message as it came
};

// White space between the elements is allowed, as other relays write it.
Reply read_reply(std::string_view message);

// The id in the JSON of an event, wherever it stands; empty when there is none. Text inside the event cannot
// be taken for it: a quote in there is escaped.
std::string_view id_in(std::string_view event);

}  // namespace todoke::bench

#include "relay_load/wire.hpp"

#include <stdexcept>

#include <fmt/format.h>

namespace todoke::bench {
namespace {

constexpr std::size_t kIdDigits = 64;

std::uint64_t big_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const char c : bytes) value = (value << 8U) | static_cast<std::uint8_t>(c);
  return value;
}

// Walks over the elements of a JSON array without looking into them.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool take(char wanted) {
    skip_space();
    if (rest_.empty() || rest_.front() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool take(std::string_view word) {
    skip_space();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  // The inside of a string as it stands there, escapes and all; empty when no string comes.
  std::string_view string() {
    if (!take('"')) return {};
    std::size_t end = 0;
    while (end < rest_.size() && rest_[end] != '"') end += rest_[end] == '\\' ? 2U : 1U;
    if (end >= rest_.size()) return {};
    const auto inside = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return inside;
  }
  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  void skip_space() {
    while (!rest_.empty() &&
           (rest_.front() == ' ' || rest_.front() == '\n' || rest_.front() == '\r' || rest_.front() == '\t'))
      rest_.remove_prefix(1);
  }
  std::string_view rest_;
};

ReplyType type_named(std::string_view name) {
  if (name == "OK") return ReplyType::ok;
  if (name == "EVENT") return ReplyType::event;
  if (name == "EOSE") return ReplyType::eose;
  if (name == "CLOSED") return ReplyType::closed;
  if (name == "NOTICE") return ReplyType::notice;
  if (name == "AUTH") return ReplyType::auth;
  return ReplyType::other;
}

}  // namespace

void append_frame(std::string& out, Opcode opcode, std::string_view payload) {
  constexpr std::uint8_t kFinal = 0x80;
  constexpr std::uint8_t kMasked = 0x80;
  out.push_back(static_cast<char>(kFinal | static_cast<std::uint8_t>(opcode)));
  const auto size = static_cast<std::uint64_t>(payload.size());
  int length_bytes = 0;
  if (size < 126) {
    out.push_back(static_cast<char>(kMasked | static_cast<std::uint8_t>(size)));
  } else if (size <= 0xffff) {
    out.push_back(static_cast<char>(kMasked | 126U));
    length_bytes = 2;
  } else {
    out.push_back(static_cast<char>(kMasked | 127U));
    length_bytes = 8;
  }
  for (int i = length_bytes - 1; i >= 0; --i) out.push_back(static_cast<char>(size >> (8 * i)));
  out.append(4, '\0');  // the mask
  out.append(payload);
}

std::string text_frame(std::string_view payload) {
  std::string out;
  append_frame(out, Opcode::text, payload);
  return out;
}

std::optional<Frame> first_frame(std::string_view bytes, bool may_compress) {
  if (bytes.size() < 2) return std::nullopt;
  const auto first = static_cast<std::uint8_t>(bytes[0]);
  const auto second = static_cast<std::uint8_t>(bytes[1]);
  const bool compressed = (first & 0x40U) != 0;
  if ((first & 0x30U) != 0 || (compressed && !may_compress))
    throw std::runtime_error("the relay sent a frame with an extension not agreed");
  if ((second & 0x80U) != 0) throw std::runtime_error("the relay sent a masked frame");
  std::uint64_t size = second;
  std::size_t header = 2;
  if (second >= 126) {
    const std::size_t length_bytes = second == 126 ? 2 : 8;
    header += length_bytes;
    if (bytes.size() < header) return std::nullopt;
    size = big_endian(bytes.substr(2, length_bytes));
  }
  if (size > kFrameBytesMax)
    throw std::runtime_error(fmt::format("the relay sent a frame of {} bytes", size));
  if (bytes.size() - header < size) return std::nullopt;
  const auto payload = bytes.substr(header, static_cast<std::size_t>(size));
  return Frame{static_cast<Opcode>(first & 0x0fU), (first & 0x80U) != 0, compressed, payload,
               header + payload.size()};
}

Reply read_reply(std::string_view message) {
  Reply reply;
  reply.text = message;
  Scanner scanner(message);
  if (!scanner.take('[')) return reply;
  const auto type = type_named(scanner.string());
  if (type == ReplyType::other || !scanner.take(',')) return reply;
  reply.name = scanner.string();
  switch (type) {
    case ReplyType::ok:
      if (!scanner.take(',')) return reply;
      reply.accepted = scanner.take("true");
      if (!reply.accepted && !scanner.take("false")) return reply;
      if (scanner.take(',')) reply.text = scanner.string();
      break;
    case ReplyType::event:
      if (!scanner.take(',')) return reply;
      reply.text = scanner.rest();
      break;
    case ReplyType::closed:
      if (scanner.take(',')) reply.text = scanner.string();
      break;
    default:
      break;
  }
  reply.type = type;
  return reply;
}

std::string_view id_in(std::string_view event) {
  for (std::size_t at = event.find("\"id\""); at != std::string_view::npos;
       at = event.find("\"id\"", at + 1)) {
    Scanner scanner(event.substr(at + 4));
    if (!scanner.take(':')) continue;
    const auto id = scanner.string();
    if (id.size() == kIdDigits) return id;
  }
  return {};
}

}  // namespace todoke::bench

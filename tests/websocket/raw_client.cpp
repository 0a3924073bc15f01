#include "raw_client.hpp"

#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <ostream>
#include <poll.h>
#include <stdexcept>
#include <unistd.h>

namespace todoke::net {

namespace {

constexpr int kPatienceMs = 60'000;
constexpr std::array<std::uint8_t, 4> kKey{0x37, 0xFA, 0x21, 0x3D};

void wait_for(int fd, short events) {
  pollfd entry{fd, events, 0};
  int ready = -1;
  do {
    ready = ::poll(&entry, 1, kPatienceMs);
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) throw std::runtime_error("the server neither sent nor took anything for 20 s");
}

std::size_t big_endian(std::string_view bytes) {
  std::size_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<std::uint8_t>(byte);
  return value;
}

}  // namespace

RawFrame text(std::string payload) {
  return {true, 0, kText, std::move(payload)};
}
RawFrame binary(std::string payload) {
  return {true, 0, kBinary, std::move(payload)};
}
RawFrame ping(std::string payload) {
  return {true, 0, kPing, std::move(payload)};
}
RawFrame pong(std::string payload) {
  return {true, 0, kPong, std::move(payload)};
}

RawFrame close_with(std::uint16_t code, std::string_view reason) {
  std::string payload{static_cast<char>(code >> 8), static_cast<char>(code & 0xFF)};
  payload += reason;
  return {true, 0, kClose, payload};
}

std::uint16_t code_of(const RawFrame& frame) {
  if (frame.opcode != kClose) return 0;
  if (frame.payload.size() < 2) return 1005;
  return static_cast<std::uint16_t>(big_endian(std::string_view(frame.payload).substr(0, 2)));
}

void PrintTo(const RawFrame& frame, std::ostream* out) {
  static constexpr std::array<const char*, 11> names{
      "continuation", "text", "binary", "?", "?", "?", "?", "?", "close", "ping", "pong"};
  *out << (frame.fin ? "" : "unfinished ") << (frame.opcode < names.size() ? names[frame.opcode] : "?");
  if (frame.rsv != 0) *out << " rsv=" << int{frame.rsv};
  *out << " of " << frame.payload.size() << " bytes";
  if (frame.opcode == kClose && frame.payload.size() >= 2) {
    *out << ", code " << big_endian(std::string_view(frame.payload).substr(0, 2)) << " '"
         << frame.payload.substr(2) << "'";
  } else if (frame.payload.size() <= 40) {
    *out << " '" << frame.payload << "'";
  }
}

std::string encode(const RawFrame& frame, Mask mask, int length_form) {
  std::string out;
  const auto push = [&out](std::size_t byte) { out.push_back(static_cast<char>(byte & 0xFF)); };
  push((frame.fin ? 0x80U : 0U) | static_cast<unsigned>(frame.rsv << 4) | frame.opcode);
  const std::size_t size = frame.payload.size();
  const unsigned mask_bit = mask == Mask::with_key ? 0x80 : 0;
  if (length_form == 0 && size > 125) length_form = size <= 0xFFFF ? 2 : 8;
  if (length_form == 0) {
    push(mask_bit | size);
  } else {
    push(mask_bit | (length_form == 2 ? 126U : 127U));
    for (int shift = 8 * (length_form - 1); shift >= 0; shift -= 8) push(size >> shift);
  }
  if (mask == Mask::none) return out + frame.payload;
  for (const std::uint8_t byte : kKey) push(byte);
  for (std::size_t i = 0; i < size; ++i)
    push(static_cast<std::uint8_t>(frame.payload[i]) ^ kKey[i % kKey.size()]);
  return out;
}

RawClient::RawClient(std::uint16_t port, NoHandshake)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error(std::string("connect: ") + std::strerror(errno));
  }
  const int on = 1;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

RawClient::RawClient(std::uint16_t port, std::string_view extensions) : RawClient(port, NoHandshake()) {
  std::string head(kHandshake);
  if (!extensions.empty()) head += "Sec-WebSocket-Extensions: " + std::string(extensions) + "\r\n";
  answer_ = request(head + "\r\n");
  if (!answer_.starts_with("HTTP/1.1 101 ")) throw std::runtime_error("handshake refused: " + answer_);
}

std::string RawClient::request(std::string_view bytes) {
  write(bytes);
  std::size_t end = std::string::npos;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
    if (!fill()) throw std::runtime_error("no answer to the request");
  }
  return take(end + 4);
}

void RawClient::write(std::string_view bytes) {
  while (!bytes.empty()) {
    wait_for(socket_.get(), POLLOUT);
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (sent < 0) return;  // the server has closed already: what it answered is what counts
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void RawClient::write_chopped(std::string_view bytes, std::size_t size) {
  for (; !bytes.empty(); bytes.remove_prefix(std::min(size, bytes.size()))) write(bytes.substr(0, size));
}

void RawClient::finish() {
  ::shutdown(socket_.get(), SHUT_WR);
}

void RawClient::wait_readable() {
  wait_for(socket_.get(), POLLIN);
}

bool RawClient::fill() {
  wait_for(socket_.get(), POLLIN);
  std::array<char, 65536> chunk;
  const ssize_t got = ::recv(socket_.get(), chunk.data(), chunk.size(), 0);
  if (got < 0) throw std::runtime_error(std::string("recv: ") + std::strerror(errno));
  buffer_.append(chunk.data(), static_cast<std::size_t>(got));
  return got > 0;
}

std::string RawClient::take(std::size_t size) {
  while (buffer_.size() < size) {
    if (!fill()) throw std::runtime_error("the stream ended inside a frame");
  }
  std::string taken = buffer_.substr(0, size);
  buffer_.erase(0, size);
  return taken;
}

std::optional<RawFrame> RawClient::read() {
  if (buffer_.empty() && !fill()) return std::nullopt;
  const std::string head = take(2);
  const auto first = static_cast<std::uint8_t>(head[0]);
  const auto second = static_cast<std::uint8_t>(head[1]);
  if ((second & 0x80) != 0) throw std::runtime_error("the server masks");
  std::size_t size = second;
  if (size == 126) size = big_endian(take(2));
  if (second == 127) size = big_endian(take(8));
  if ((second == 126 && size < 126) || (second == 127 && size < 65536))
    throw std::runtime_error("length too long");
  return RawFrame{(first & 0x80) != 0, static_cast<std::uint8_t>(first >> 4 & 7),
                  static_cast<std::uint8_t>(first & 15), take(size)};
}

std::vector<RawFrame> RawClient::read_all() {
  std::vector<RawFrame> frames;
  while (auto frame = read()) frames.push_back(std::move(*frame));
  return frames;
}

std::vector<RawFrame> exchange(std::uint16_t port, const std::vector<RawFrame>& frames,
                               std::string_view extensions) {
  RawClient client(port, extensions);
  std::string bytes;
  for (const RawFrame& frame : frames) bytes += encode(frame);
  client.write(bytes);
  return client.read_all();
}

}  // namespace todoke::net

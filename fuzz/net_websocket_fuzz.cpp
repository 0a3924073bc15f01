// Any bytes as what a WebSocket peer sends: frames, fragments, UTF-8, compression, close frames, and the
// extension header. The first byte chooses role, compression and how the bytes are cut; the same bytes must
// tell the same story cut or whole.
#include <cstdlib>
#include <string>
#include <string_view>

#include "net/deflate.hpp"
#include "net/ws_receiver.hpp"

namespace {

using namespace todoke;
using namespace todoke::net;

constexpr std::size_t kMessageBytesMax = 64 * 1024;

std::string story(std::string_view stream, std::size_t piece, WsRole role, bool deflate) {
  WsReceiver receiver(role, WsAgreement{deflate}, kMessageBytesMax);
  std::string told;
  while (!stream.empty()) {
    const std::string bytes(stream.substr(0, piece));  // a copy: reading beyond it is caught by the sanitizer
    stream.remove_prefix(bytes.size());
    receiver.give(bytes);
    for (WsEvent event = receiver.next(); event.kind != WsEvent::Kind::starved; event = receiver.next()) {
      if (event.payload.size() > kMessageBytesMax) std::abort();
      if (event.kind == WsEvent::Kind::message && event.opcode == WsOpcode::text && !is_utf8(event.payload))
        std::abort();
      told += std::to_string(static_cast<int>(event.kind)) + ":" + std::to_string(event.code) + ":";
      told += event.payload;
      told += '\n';
    }
  }
  return told;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const unsigned choice = data[0];
  const std::string_view stream(reinterpret_cast<const char*>(data + 1), size - 1);
  const WsRole role = (choice & 1) != 0 ? WsRole::server : WsRole::client;
  const bool deflate = (choice & 2) != 0;
  const std::size_t piece = 1 + choice / 4;
  if (story(stream, stream.size(), role, deflate) != story(stream, piece, role, deflate)) std::abort();

  const auto answer = accept_deflate(stream);
  static_cast<void>(deflate_agreed(stream));
  if (answer && *answer && !deflate_agreed(**answer)) std::abort();

  std::string inflated;
  if (inflate_message(stream, kMessageBytesMax, inflated) == Inflated::ok) {
    std::string again;
    if (inflate_message(deflate_message(inflated), kMessageBytesMax, again) != Inflated::ok ||
        again != inflated)
      std::abort();
  }
  return 0;
}

#include "abuse_load/attacks.hpp"

#include <deque>
#include <optional>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "harness/hostile_client.hpp"
#include "net/deflate.hpp"
#include "net/frame.hpp"

namespace todoke::bench {
namespace {

using test::HostileClient;

constexpr std::size_t kHeldMax = 500;   // sockets of a thread
constexpr std::size_t kSlowMax = 100;   // messages that a thread keeps unfinished
constexpr std::size_t kRowMax = 1'000;  // messages on a connection

// A node lets an address have 30 connections a minute.
std::string next_address() {
  static std::atomic<unsigned> number = 0;
  const auto n = number++;
  return fmt::format("127.{}.{}.{}", 1 + n / 60'000 % 200, n / 250 % 240, 1 + n % 250);
}

// Nothing where the node lets nobody in.
std::optional<HostileClient> websocket(std::uint16_t port) {
  try {
    return HostileClient::websocket(port, next_address());
  } catch (const std::runtime_error&) {
    std::this_thread::yield();
    return std::nullopt;
  }
}

void silent(std::uint16_t port, const std::atomic<bool>& over) {
  std::deque<HostileClient> held;
  while (!over) {
    try {
      held.emplace_back(port, next_address());
    } catch (const std::runtime_error&) {
      std::this_thread::yield();  // no port is left, or the node's queue is full
    }
    if (held.size() > kHeldMax) held.pop_front();
  }
}

void never_ending(std::uint16_t port, const std::atomic<bool>& over) {
  std::deque<HostileClient> slow;
  std::string frame;
  net::append_frame(frame, 0x81, std::string(100'000, 'x'), net::Masking::random);
  for (std::size_t at = 0; !over; ++at) {
    if (slow.size() < kSlowMax) {
      if (auto client = websocket(port); client && client->write(frame.substr(0, 14)))
        slow.push_back(std::move(*client));
    }
    for (auto& client : slow) client.write("x");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (at % 1'000 == 999) slow.clear();
  }
}

// `frame` on connection after connection.
void repeat(std::uint16_t port, const std::atomic<bool>& over, const std::string& frame) {
  while (!over) {
    auto client = websocket(port);
    for (std::size_t i = 0; client && i < kRowMax && !over; ++i) {
      if (!client->write(frame)) break;
    }
  }
}

std::string text(std::string_view message) {
  std::string frame;
  net::append_frame(frame, 0x81, message, net::Masking::random);
  return frame;
}

std::string bomb() {
  std::string frame;
  net::append_frame(frame, 0xc1, net::deflate_message(std::string(1024 * 1024, ' ')), net::Masking::random);
  return frame;
}

// Writes what is left of each message but its last byte.
void unfinished(std::uint16_t port, const std::atomic<bool>& over) {
  std::string frame;
  net::append_frame(frame, 0x81, std::string(1'000'000, 'x'), net::Masking::random);
  frame.pop_back();
  std::deque<HostileClient> held;
  while (!over) {
    auto client = websocket(port);
    if (client && client->write(frame)) held.push_back(std::move(*client));
    if (held.size() > kHeldMax) held.pop_front();
  }
}

// A thousand, which are written at once.
std::string row_of(std::uint8_t first_byte) {
  std::string frames;
  for (std::size_t i = 0; i < kRowMax; ++i) net::append_frame(frames, first_byte, "", net::Masking::random);
  return frames;
}

std::string begun_message() {
  std::string frame;
  net::append_frame(frame, 0x01, "[", net::Masking::random);
  return frame;
}

// One message in frames with nothing in them, for as long as the node listens.
void empty_frames(std::uint16_t port, const std::atomic<bool>& over) {
  const auto frames = row_of(0x00);
  while (!over) {
    auto client = websocket(port);
    bool goes_on = client && client->write(begun_message());
    while (goes_on && !over) goes_on = client->write(frames);
  }
}

// Whatever the node thinks of it: a question with as many filters as it takes.
std::string question() {
  std::string filters;
  for (int i = 0; i < 20; ++i) filters += fmt::format(R"(,{{"#t":["kukuri:global"],"limit":{}}})", 100 + i);
  return text(fmt::format(R"(["REQ","q"{}])", filters));
}

}  // namespace

const std::vector<Attack>& attacks() {
  static const std::vector<Attack> kAttacks{
      {"silent connections", silent},
      {"messages that never end", never_ending},
      {"messages all but a byte", unfinished},
      {"frames with nothing in them", empty_frames},
      {"pings", [](auto port, const auto& over) { repeat(port, over, row_of(0x89)); }},
      {"deflate bombs", [](auto port, const auto& over) { repeat(port, over, bomb()); }},
      {"garbage", [](auto port, const auto& over) { repeat(port, over, text("[[[[")); }},
      {"questions beyond the rate", [](auto port, const auto& over) { repeat(port, over, question()); }},
  };
  return kAttacks;
}

}  // namespace todoke::bench

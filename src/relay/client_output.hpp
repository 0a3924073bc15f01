// What the hub has for one client, handed to its connection in order. A page of stored events (up to 2 MiB)
// is framed, and compressed where that was agreed, on the connection's loop, which serves other connections
// too. So it goes out in slices of about 64 KiB, and the loop does other work in between; what comes behind a
// page waits until the page is through.
//
// Says when there is room for the next page: as soon as less than 1 MiB of a page waits for the socket.
//
// Bounded: the hub has a few pages for a connection at once. When too many frames wait behind them everything
// is handed over at once, and the connection's own bound holds. All connections together hold kPageBytesMax.
// Used on the connection's executor only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "net/client_memory.hpp"
#include "net/websocket.hpp"
#include "nostr/wire.hpp"
#include "relay/incoming.hpp"

namespace todoke::relay {

// Stored events that clients have asked for and their sockets have not taken, of the whole process.
inline constexpr std::size_t kPageBytesMax = 256 * 1024 * 1024;

class ClientOutput : public std::enable_shared_from_this<ClientOutput> {
 public:
  // Compressing 64 KiB takes one to two milliseconds.
  static constexpr std::size_t kSliceBytes = 64 * 1024;
  static constexpr std::size_t kPageRoomBytes = 1024 * 1024;
  static constexpr std::size_t kWaitingMax = 1'000;

  // `client` is the network that the connection comes from. `on_page_done` is called once for each page.
  ClientOutput(std::shared_ptr<net::WsConnection> connection, std::shared_ptr<net::ClientMemory> memory,
               std::string client, std::function<void()> on_page_done);

  void add_frames(std::vector<net::FramePtr> frames);
  // The bytes of the events.
  std::size_t add_page(nostr::SubId sub, std::vector<LiveEventPtr> events, std::string eose);
  // The subscription was closed or replaced: what is left of its page is not sent.
  void drop_page(std::string_view sub);
  // `bytes` more were handed to the socket.
  void written(std::size_t bytes);
  // The connection is about to be closed: queues all that is left, at once.
  void send_rest();
  // The connection has ended.
  void end();

 private:
  struct Page {
    nostr::SubId sub;
    std::vector<LiveEventPtr> events;
    std::size_t sent = 0;  // of the events
    std::string eose;
    std::size_t bytes = 0;  // of the events' JSON
  };

  void send_slice();
  // The bytes that it took.
  std::size_t send_next();
  std::size_t send(const net::FramePtr& frame);
  // Its last byte is queued, or what is left of it is not sent.
  void page_sent(std::size_t bytes);

  std::shared_ptr<net::WsConnection> connection_;  // null after end()
  std::function<void()> on_page_done_;
  std::deque<std::variant<Page, net::FramePtr>> waiting_;
  bool slice_posted_ = false;
  std::uint64_t written_ = 0;
  // Of each page that was sent and waits for the socket: at how many bytes there is room for the next one.
  std::deque<std::uint64_t> room_at_;
  // Likewise: at how many bytes the socket has taken all of it.
  struct Leaving {
    std::uint64_t at;
    std::size_t bytes;
  };
  std::deque<Leaving> leaving_;
  net::ClientMemory::Holder held_;
};

}  // namespace todoke::relay

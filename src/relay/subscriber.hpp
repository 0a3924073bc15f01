// A connection, as the hub sees it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/websocket.hpp"
#include "nostr/wire.hpp"
#include "relay/incoming.hpp"

namespace todoke::relay {

// Called on the hub's executor; each passes on to the connection's own, in order.
class Subscriber {
 public:
  virtual ~Subscriber() = default;
  // Whose budget its reads are on: the network of its address (net/client_network.hpp). Never changes.
  [[nodiscard]] virtual const std::string& network() const = 0;
  virtual void deliver(std::vector<net::FramePtr> frames) = 0;
  // Stored events and what ends them. The connection calls Hub::page_done when there is room for another
  // page.
  virtual void deliver_page(nostr::SubId sub, std::vector<LiveEventPtr> events, std::string eose) = 0;
  // The answer to a COUNT.
  virtual void deliver_count(nostr::SubId sub, std::uint64_t found) = 0;
  // After Hub::drain(): every REQ and COUNT has its answer.
  virtual void all_answered() = 0;
};
using SubscriberPtr = std::shared_ptr<Subscriber>;

inline net::FramePtr text_frame(std::string_view text) {
  return net::make_frame(net::WsOpcode::text, text);
}

}  // namespace todoke::relay

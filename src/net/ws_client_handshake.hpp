// The client's side of the opening handshake, over a transport that is connected.
#pragma once

#include "net/url.hpp"
#include "net/ws_client.hpp"

namespace todoke::net {

struct WsOpened {
  WsAgreement agreement;
  std::string buffered;  // read beyond the answer
};

// Throws WsRefused or NetError. Has no deadline of its own: the caller closes the transport when time is up.
Task<WsOpened> open_websocket(std::shared_ptr<Transport> transport, Url url, Headers extra,
                              bool offer_deflate);

}  // namespace todoke::net

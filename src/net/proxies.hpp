// Who the client is when requests come through proxies. Forwarding headers are believed only from listed
// proxies.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "net/ip.hpp"
#include "net/message.hpp"

namespace todoke::net {

class TrustedProxies {
 public:
  // "10.0.0.0/8", "2001:db8::/32", or a single address.
  static Expected<TrustedProxies> parse(std::span<const std::string> blocks);

  [[nodiscard]] bool contains(const IpBytes& ip) const;
  [[nodiscard]] bool contains(std::string_view ip) const;
  [[nodiscard]] bool empty() const { return blocks_.empty(); }

 private:
  struct Block {
    IpBytes ip;
    unsigned bits;  // of the IPv6 form
  };
  std::vector<Block> blocks_;
};

struct ClientView {
  std::string ip;
  bool secure = false;
};

// Whether the request names another client than its peer: a proxy has passed it on.
bool is_forwarded(const Headers& headers);

// The right-most address in X-Forwarded-For (or, without that, Forwarded) that is no listed proxy; and
// whether the nearest proxy says https (X-Forwarded-Proto, or proto= of Forwarded). An entry that is no
// address ends the search at the proxy that reported it: nothing to its left is believed.
ClientView client_view(const std::string& peer_ip, bool secure, const Headers& headers,
                       const TrustedProxies& proxies);

}  // namespace todoke::net

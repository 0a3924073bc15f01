// Which names a request may be addressed to (its Host header). A hostile web page can make a browser send
// requests to this node under a name of the attacker's that resolves to the node's address (DNS rebinding),
// and read the answers. The Host header then holds the attacker's name.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace todoke::net {

// Whether only this machine reaches the address (host:port): localhost, 127.0.0.0/8, ::1.
bool is_loopback(std::string_view listen);

class HostRule {
 public:
  // Every name passes.
  HostRule() = default;
  // Accepts `names`, and on a loopback address also localhost and the loopback addresses. On another address
  // it checks nothing while `names` is empty, and accepts any IP address: probes of load balancers send one,
  // and a web page can't make one resolve elsewhere. "*" among the names accepts every name.
  HostRule(std::string_view listen, std::span<const std::string> names);

  // `authority` is a Host header: a name or an address, with or without a port.
  [[nodiscard]] bool allows(std::string_view authority) const;
  [[nodiscard]] bool checks() const { return checks_; }

 private:
  bool checks_ = false;
  bool loopback_ = false;
  std::vector<std::string> names_;  // lower case, without port
};

// The host of an authority or of a URL (http, https, ws, wss), in lower case, without port, brackets and
// final dot. Empty: there is none.
std::string host_of(std::string_view authority_or_url);

}  // namespace todoke::net

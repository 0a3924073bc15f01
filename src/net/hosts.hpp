// Which names a request may be addressed to (its Host header). A page of a stranger can make a browser ask
// this node under a name of the stranger's that leads here (DNS rebinding), and read the answer; the name in
// the Host header is the stranger's then.
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
  // What passes: `names`, and on a loopback address localhost and the loopback addresses. On another address
  // nothing is checked while `names` is empty, and any IP address passes: probes of load balancers name it,
  // and no page of a stranger can. "*" among the names: every name passes.
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

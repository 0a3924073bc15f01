// Sockets that wait until their peer sends something or hangs up, each for a limited time: connections that
// have said nothing yet, and refused ones that are still told why.
//
// They stand in an epoll set of their own, which is one descriptor to the event loop. So one of them costs a
// system call when it comes and one when it goes, and about 200 bytes; a connection that is served costs 10
// KiB and work on a loop that serves others. The caller bounds how many there are. On its executor only.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/async.hpp"
#include "base/fd.hpp"
#include "net/address_places.hpp"
#include "net/ip.hpp"

namespace todoke::net {

// A connection that was accepted.
struct Guest {
  Guest(Fd s, const IpBytes& i) : socket(std::move(s)), ip(i) {}

  Fd socket;
  IpBytes ip;
  std::optional<AddressPlaces::Place> place;
  unsigned times_heard = 0;
};

class Porch {
 public:
  struct Hooks {
    std::function<void(Guest)> heard;  // its peer has sent something, or has hung up
    std::function<void(Guest)> late;   // it has waited for `patience`
  };

  // Throws NetError when there is no descriptor left.
  Porch(const Executor& executor, std::chrono::nanoseconds patience, Hooks hooks);
  // No hook is called any more.
  ~Porch();
  Porch(const Porch&) = delete;
  Porch& operator=(const Porch&) = delete;

  void add(Guest guest);
  // The one that has waited longest.
  std::optional<Guest> take_oldest();
  [[nodiscard]] std::size_t size() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace todoke::net

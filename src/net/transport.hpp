// A byte stream to one peer, plain TCP or TLS. HTTP and WebSocket are written once, against this. Not
// thread-safe: one executor, one read and one write under way at a time (a read and a write may overlap).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/async.hpp"

namespace todoke::net {

// The connection broke, timed out or was closed. `what()` says which.
class NetError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Transport {
 public:
  virtual ~Transport() = default;

  // At least one byte; 0 when the peer has ended its side. Throws NetError.
  virtual Task<std::size_t> read_some(std::span<char> into) = 0;
  // All of `parts`, in one gathered write where the socket takes it (at most 64 parts a call). Throws
  // NetError.
  virtual Task<void> write(std::span<const std::string_view> parts) = 0;
  // Tells the peer that nothing more comes (TLS close-notify, then FIN). Never throws.
  virtual Task<void> finish() = 0;
  // At once; operations under way end with NetError. Safe to call twice.
  virtual void close() noexcept = 0;

  // Whether the peer sends nothing beyond what has arrived already, read or not.
  [[nodiscard]] virtual bool peer_has_ended() = 0;
  [[nodiscard]] virtual const std::string& peer_ip() const = 0;
  [[nodiscard]] virtual bool secure() const = 0;
  [[nodiscard]] virtual Executor executor() const = 0;
};

inline constexpr std::size_t kWritePartsMax = 64;

}  // namespace todoke::net

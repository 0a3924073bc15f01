// The endpoint of iroh-gossip (iroh/include/todoke_iroh.h) behind plain types. Where the build left it out,
// everything compiles and start() throws.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "gossip/ids.hpp"

namespace todoke::gossip {

// Why this build has no gossip; empty: it has.
std::string_view left_out();

// Told from the endpoint's threads, several at a time: must be quick and must not throw.
class EndpointListener {
 public:
  virtual ~EndpointListener() = default;
  // `from` is who passed it on, not who made it.
  virtual void on_message(const ChannelId& channel, const NodeId& from, std::string_view bytes) noexcept = 0;
  virtual void on_neighbour(const ChannelId& channel, const NodeId& peer, bool is_up) noexcept = 0;
  // The library has dropped messages that came in the channel.
  virtual void on_lag(const ChannelId& channel) noexcept = 0;
  // The channel has to be joined again.
  virtual void on_ended(const ChannelId& channel) noexcept = 0;
  // The peer's address is known now.
  virtual void on_known(const NodeId& peer) noexcept = 0;
  // Another node asks; Endpoint::answer with this number has to follow, once.
  virtual void on_question(const NodeId& from, std::uint64_t number, std::string_view bytes) noexcept = 0;
  // Of Endpoint::ask; nothing: there is no answer.
  virtual void on_answer(std::uint64_t number, std::optional<std::string_view> bytes) noexcept = 0;
};

using SecretKey = std::array<std::uint8_t, 32>;

struct EndpointOptions {
  SecretKey secret_key{};
  std::string listen;               // ip:port
  std::vector<std::string> relays;  // URLs of relay servers
  std::size_t message_bytes_max = 0;
  std::size_t connections_max = 0;
};

class AddressInUse : public UserError {
 public:
  using UserError::UserError;
};

enum class Sent { taken, not_joined, full, too_long };

// Thread-safe but for its end.
class Endpoint {
 public:
  // Takes some milliseconds, on the caller's thread. Throws UserError. The listener must outlive it.
  static std::unique_ptr<Endpoint> start(const EndpointOptions& options, EndpointListener& listener);
  // Leaves everything and joins its threads: up to three seconds.
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  [[nodiscard]] std::vector<std::string> addresses() const;
  void dial(const NodeId& peer, const std::string& address);
  void forget(const NodeId& peer);
  void block(std::span<const NodeId> peers);
  // Joined already: dials the peers for it.
  bool join(const ChannelId& channel, std::span<const NodeId> peers);
  void leave(const ChannelId& channel);
  Sent send(const ChannelId& channel, std::string_view bytes);
  // Of a neighbour, or a node whose address is known; on_answer follows, once.
  void ask(const NodeId& peer, std::uint64_t number, std::string_view question);
  // Nothing refuses the question.
  void answer(std::uint64_t number, std::optional<std::string_view> answer);

 private:
  struct Handle;
  explicit Endpoint(Handle* handle) : handle_(handle) {}
  Handle* handle_;
};

NodeId id_of(const SecretKey& key);

}  // namespace todoke::gossip

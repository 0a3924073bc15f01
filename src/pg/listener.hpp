// Listens for NOTIFY on a connection of its own and tells those who subscribed.
//
// A notification is a hint, never the data: some are lost while the connection is down. So after every
// (re)connect, and when a subscription has just begun, each subscriber is told to look for itself
// (`Wake::repoll`). A peer that is gone without a word is noticed by a statement every `ping_every`.
// subscribe() and dropping a Subscription are thread-safe; callbacks run on the listener's executor, must be
// short and must not throw. One that is running while its Subscription is dropped on another thread runs to
// its end.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/metrics.hpp"
#include "base/service.hpp"
#include "pg/connection.hpp"

namespace todoke::pg {

struct Wake {
  bool repoll = false;  // notifications may have been missed; the payload is empty
  std::string_view payload;
};

struct ListenerOptions {
  ConnectOptions connect;
  std::chrono::milliseconds ping_every{15'000};
  std::chrono::milliseconds ping_max{5'000};
};

class Listener final : public Service {
 public:
  using Callback = std::function<void(const Wake&)>;

  // Ends when it is dropped; may outlive the listener.
  class Subscription {
   public:
    Subscription() = default;
    Subscription(Subscription&&) noexcept = default;
    Subscription& operator=(Subscription&& other) noexcept;
    ~Subscription();

   private:
    friend class Listener;
    struct Entry;
    explicit Subscription(std::shared_ptr<Entry> entry) : entry_(std::move(entry)) {}
    std::shared_ptr<Entry> entry_;
  };

  Listener(Executor executor, ListenerOptions options, metrics::Registry& registry);
  ~Listener() override;

  // The channel is a name in lower case, [a-z_][a-z0-9_]*, of 63 characters at most; any other throws
  // std::invalid_argument.
  [[nodiscard]] Subscription subscribe(std::string_view channel, Callback callback);

  [[nodiscard]] std::string_view name() const override { return "listener"; }
  Task<void> start() override;
  // Reconnects by itself, with backoff.
  Task<void> run() override;
  void stop() override;

 private:
  struct Book;

  Task<void> connect();
  Task<void> listen_until_lost();
  Task<void> update_channels();
  void deliver(const Notification& notification);

  Executor executor_;
  ListenerOptions options_;
  metrics::Counter& reconnects_;
  metrics::Gauge& connected_;
  Signal stop_asked_;
  std::shared_ptr<Book> book_;
  std::shared_ptr<Connection> connection_;
};

}  // namespace todoke::pg

#include "pg/listener.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "base/backoff.hpp"
#include "base/log.hpp"
#include "pg/error.hpp"

namespace todoke::pg {

namespace {
constexpr std::chrono::milliseconds kReconnectFirst(100);
constexpr std::chrono::milliseconds kReconnectMost(5'000);
// Postgres cuts longer names without a word.
constexpr std::size_t kChannelMax = 63;
constexpr Statement kPing{"ping", "SELECT 1"};

bool is_channel(std::string_view name) {
  if (name.empty() || name.size() > kChannelMax || (name[0] >= '0' && name[0] <= '9')) return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}
}  // namespace

struct Listener::Subscription::Entry {
  std::string channel;
  Callback callback;
  std::weak_ptr<Book> book;
  std::atomic<bool> active{true};
  bool greeted = false;  // has been told to look for itself on this connection; on the listener's executor
};

// The subscribers of each channel. Shared with the subscriptions; all under the lock except where said.
struct Listener::Book {
  using Entries = std::vector<std::shared_ptr<Subscription::Entry>>;

  explicit Book(Executor e) : executor(std::move(e)) {}

  // Makes the listener look at the book. From any thread.
  void ring() {
    asio::post(executor, [connection = current()] {
      if (const auto open = connection.lock()) open->interrupt();
    });
  }

  std::weak_ptr<Connection> current() {
    const std::lock_guard lock(mutex);
    changed = true;
    return connection;
  }

  [[nodiscard]] Entries snapshot() {
    const std::lock_guard lock(mutex);
    return entries;
  }

  bool has_changed() {
    const std::lock_guard lock(mutex);
    return changed;
  }

  bool clear_changed() {
    const std::lock_guard lock(mutex);
    return std::exchange(changed, false);
  }

  void set_connection(const std::shared_ptr<Connection>& now) {
    const std::lock_guard lock(mutex);
    connection = now;
    changed = true;
  }

  Executor executor;
  std::mutex mutex;
  Entries entries;
  bool changed = false;
  std::weak_ptr<Connection> connection;
  std::set<std::string> listening;  // on the listener's executor
};

Listener::Subscription& Listener::Subscription::operator=(Subscription&& other) noexcept {
  std::swap(entry_, other.entry_);
  return *this;
}

Listener::Subscription::~Subscription() {
  if (!entry_) return;
  entry_->active = false;
  const auto book = entry_->book.lock();
  if (!book) return;
  {
    const std::lock_guard lock(book->mutex);
    std::erase(book->entries, entry_);
  }
  book->ring();
}

Listener::Listener(Executor executor, ListenerOptions options, metrics::Registry& registry)
    : executor_(std::move(executor)),
      options_(std::move(options)),
      reconnects_(
          registry.counter("todoke_pg_listener_connects_total", "Connections that the listener made.")),
      connected_(registry.gauge("todoke_pg_listener_connected", "1 while the listener is connected.")),
      stop_asked_(executor_),
      book_(std::make_shared<Book>(executor_)) {}

Listener::~Listener() = default;

Listener::Subscription Listener::subscribe(std::string_view channel, Callback callback) {
  if (!is_channel(channel)) throw std::invalid_argument(fmt::format("not a channel name: {}", channel));
  auto entry = std::make_shared<Subscription::Entry>();
  entry->channel = channel;
  entry->callback = std::move(callback);
  entry->book = book_;
  {
    const std::lock_guard lock(book_->mutex);
    book_->entries.push_back(entry);
  }
  book_->ring();
  return Subscription(std::move(entry));
}

Task<void> Listener::start() {
  co_await connect();
}

void Listener::stop() {
  stop_asked_.set();
  if (connection_) connection_->interrupt();
}

Task<void> Listener::connect() {
  connected_.set(0);
  connection_.reset();
  auto options = options_.connect;
  auto made = co_await Connection::connect(std::move(options), Deadline::after(kConnectMax));
  connection_ = std::move(made);
  book_->listening.clear();
  for (const auto& entry : book_->snapshot()) entry->greeted = false;
  book_->set_connection(connection_);
  co_await update_channels();
  connected_.set(1);
  reconnects_.add();
}

// LISTEN first and tell after: what is committed before the LISTEN is found by looking, what comes later is
// notified.
Task<void> Listener::update_channels() {
  if (!book_->clear_changed()) co_return;
  const auto entries = book_->snapshot();
  std::set<std::string> wanted;
  for (const auto& entry : entries) wanted.insert(entry->channel);
  std::string script;
  for (const auto& channel : wanted) {
    if (!book_->listening.contains(channel)) script += fmt::format("LISTEN {};", channel);
  }
  for (const auto& channel : book_->listening) {
    if (!wanted.contains(channel)) script += fmt::format("UNLISTEN {};", channel);
  }
  if (!script.empty())
    co_await connection_->execute_script(std::move(script), Deadline::after(options_.ping_max));
  book_->listening = std::move(wanted);
  for (const auto& entry : entries) {
    if (!std::exchange(entry->greeted, true) && entry->active) entry->callback(Wake{true, {}});
  }
}

void Listener::deliver(const Notification& notification) {
  for (const auto& entry : book_->snapshot()) {
    // One that was not greeted yet will be, and looks for itself then.
    if (entry->channel == notification.channel && entry->greeted && entry->active) {
      entry->callback(Wake{false, notification.payload});
    }
  }
}

Task<void> Listener::listen_until_lost() {
  auto ping_at = Deadline::after(options_.ping_every);
  while (!stop_asked_.is_set()) {
    co_await update_channels();
    if (ping_at.passed()) {
      co_await connection_->query(kPing, {}, Deadline::after(options_.ping_max));
      ping_at = Deadline::after(options_.ping_every);
    }
    if (stop_asked_.is_set()) co_return;
    if (book_->has_changed()) continue;  // while a statement was under way
    const auto notifications = co_await connection_->notifications(ping_at);
    for (const auto& notification : notifications) deliver(notification);
  }
}

Task<void> Listener::run() {
  Backoff backoff(kReconnectFirst, kReconnectMost);
  while (!stop_asked_.is_set()) {
    std::string failure;
    try {
      if (!connection_ || !connection_->usable()) co_await connect();
      backoff.reset();
      co_await listen_until_lost();
    } catch (const DatabaseError& error) {
      failure = error.what();
    }
    if (failure.empty()) continue;
    connected_.set(0);
    connection_.reset();
    const auto pause = backoff.next();
    log::warning("pg", "listener lost its connection", {{"error", failure}, {"retry_ms", pause.count()}});
    co_await stop_asked_.wait_for(pause);
  }
  connected_.set(0);
  connection_.reset();
}

}  // namespace todoke::pg

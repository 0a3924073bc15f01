#include "orders/intake/order_watch.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/this_coro.hpp>

#include "base/config.hpp"
#include "base/log.hpp"
#include "orders/intake/intake_sql.hpp"

namespace todoke::orders {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kLookMax = 5s;
constexpr std::chrono::milliseconds kIdleLook = 1s;

constexpr KeySpec kWait{.name = "wait", .type = KeyType::duration, .fallback = "0", .unit = "s", .min = 0};

}  // namespace

std::optional<std::chrono::milliseconds> OrderWatch::asked_wait(std::string_view text) {
  const auto parsed = parse_value(kWait, text);
  if (!parsed) return std::nullopt;
  return std::min(std::get<std::chrono::milliseconds>(*parsed), kWaitMax);
}

struct OrderWatch::Waiter {
  Waiter(std::string k, const Executor& executor) : key(std::move(k)), told(executor) {}
  const std::string key;
  std::optional<OrderState> state;  // written before `told` is set
  Signal told;
};

OrderWatch::OrderWatch(const Executor& executor, std::size_t waiters_max, pg::Pool& pool,
                       pg::Listener& listener, metrics::Registry& registry)
    : waiters_max_(waiters_max),
      pool_(pool),
      listener_(listener),
      wake_(executor),
      waiting_(registry.gauge("todoke_orders_waiting", "Requests that wait for an order to be settled.")) {}

OrderWatch::~OrderWatch() = default;

Task<std::optional<OrderState>> OrderWatch::wait_settled(std::string key, std::chrono::milliseconds most) {
  const auto executor = co_await asio::this_coro::executor;
  const auto waiter = std::make_shared<Waiter>(std::move(key), executor);
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || waiters_.size() >= waiters_max_) co_return std::nullopt;
    waiters_.emplace(waiter->key, waiter);
    waiting_.set(static_cast<double>(waiters_.size()));
  }
  wake_.set_from_anywhere();
  const bool told = co_await waiter->told.wait_for(most);
  if (!told) {
    leave(waiter);
    co_return std::nullopt;
  }
  co_return std::move(waiter->state);
}

void OrderWatch::leave(const std::shared_ptr<Waiter>& waiter) {
  const std::lock_guard lock(mutex_);
  const auto [first, last] = waiters_.equal_range(waiter->key);
  const auto own = std::find_if(first, last, [&](const auto& entry) { return entry.second == waiter; });
  if (own != last) waiters_.erase(own);
  waiting_.set(static_cast<double>(waiters_.size()));
}

void OrderWatch::wake() {
  settled_here_ = true;
  wake_.set_from_anywhere();
}

Task<void> OrderWatch::start() {
  settled_elsewhere_ =
      listener_.subscribe("orders_settled", [this](const pg::Wake&) { wake_.set_from_anywhere(); });
  co_return;
}

void OrderWatch::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  for (const auto& [key, waiter] : waiters_) waiter->told.set_from_anywhere();
  waiters_.clear();
  waiting_.set(0);
  wake_.set();
}

std::vector<std::string> OrderWatch::watched() const {
  std::vector<std::string> keys;
  const std::lock_guard lock(mutex_);
  for (auto it = waiters_.begin(); it != waiters_.end(); it = waiters_.upper_bound(it->first)) {
    keys.push_back(it->first);
  }
  return keys;
}

Task<void> OrderWatch::run() {
  while (!stopped_) {
    wake_.reset();
    std::exception_ptr failure;
    try {
      co_await look();
      co_await tell_others();
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure) {
      log::debug("orders", "orders that are waited for could not be read", {{"error", describe(failure)}});
    }
    if (!stopped_) co_await wake_.wait_for(pause());
  }
  settled_elsewhere_ = {};
}

std::chrono::milliseconds OrderWatch::pause() const {
  if (settled_here_) return kTellEvery;
  return watched().empty() ? kIdleLook : kLookEvery;
}

Task<void> OrderWatch::tell_others() {
  const auto now = std::chrono::steady_clock::now();
  if (!settled_here_ || now - told_at_ < kTellEvery) co_return;
  told_at_ = now;
  settled_here_ = false;
  const auto deadline = Deadline::after(kLookMax);
  auto lease = co_await pool_.acquire(deadline);
  co_await lease->query(sql::kTellSettled, {}, deadline);
}

Task<void> OrderWatch::look() {
  const auto keys = watched();
  if (keys.empty()) co_return;
  const auto deadline = Deadline::after(kLookMax);
  auto lease = co_await pool_.acquire(deadline);
  const auto states = co_await read_states(*lease, keys, deadline);
  const std::lock_guard lock(mutex_);
  for (const auto& state : states) {
    if (!state.is_settled()) continue;
    const auto [first, last] = waiters_.equal_range(state.idempotency_key);
    for (auto it = first; it != last; ++it) {
      it->second->state = state;
      it->second->told.set_from_anywhere();
    }
    waiters_.erase(first, last);
  }
  waiting_.set(static_cast<double>(waiters_.size()));
}

}  // namespace todoke::orders

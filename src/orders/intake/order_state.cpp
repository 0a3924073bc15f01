#include "orders/intake/order_state.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/this_coro.hpp>

#include "base/attempt.hpp"
#include "base/config.hpp"
#include "base/json_writer.hpp"
#include "base/log.hpp"
#include "base/timestamp.hpp"
#include "orders/intake/intake_sql.hpp"
#include "pg/channels.hpp"

namespace todoke::orders {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kLookMax = 5s;
constexpr std::chrono::milliseconds kIdleLook = 1s;

constexpr KeySpec kWait{.name = "wait", .type = KeyType::duration, .fallback = "0", .unit = "s", .min = 0};

}  // namespace

std::string to_json(const OrderState& state) {
  JsonWriter json;
  json.begin_object();
  json.member("idempotency_key", state.idempotency_key).member("status", state.status);
  json.member("attempts", state.attempts).key("next_run_at");
  if (state.next_run_at) {
    json.value(format_timestamp(*state.next_run_at));
  } else {
    json.null();
  }
  json.key("last_error_code");
  if (state.last_error_code) {
    json.value(*state.last_error_code);
  } else {
    json.null();
  }
  json.member("in_doubt", state.in_doubt);
  json.key("http_status").raw(state.http_status ? std::to_string(*state.http_status) : "null");
  json.key("result").raw(state.result ? *state.result : "null");
  json.end_object();
  return std::move(json).text();
}

Task<std::vector<OrderState>> read_states(pg::Connection& connection, std::span<const std::string> keys,
                                          Deadline deadline) {
  pg::Params params(keys);
  const auto rows = co_await connection.query(sql::kReadStates, std::move(params), deadline);
  std::vector<OrderState> states;
  states.reserve(rows.size());
  for (const auto& row : rows) {
    auto& state = states.emplace_back();
    state.idempotency_key = row.get<std::string>("key");
    state.request_digest = row.get<std::string>("request_digest");
    state.status = row.get<std::string>("status");
    state.attempts = row.get<std::int32_t>("attempts");
    state.next_run_at = row.get<std::optional<SystemTime>>("next_run_at");
    state.last_error_code = row.get<std::optional<std::string>>("last_error_code");
    state.in_doubt = row.get<bool>("in_doubt");
    state.http_status = row.get<std::optional<std::int32_t>>("http_status");
    if (auto result = row.get<std::optional<pg::Json>>("result")) state.result = std::move(result->text);
  }
  co_return states;
}

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
    stop_waiting(waiter);
    co_return std::nullopt;
  }
  co_return std::move(waiter->state);
}

void OrderWatch::stop_waiting(const std::shared_ptr<Waiter>& waiter) {
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
  settled_elsewhere_ = listener_.subscribe(pg::channels::kOrdersSettled,
                                           [this](const pg::Wake&) { wake_.set_from_anywhere(); });
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
    const auto done = co_await attempt(round());
    if (!done) {
      log::debug("orders", "orders that are waited for could not be read",
                 {{"error", describe(done.error())}});
    }
    if (!stopped_) co_await wake_.wait_for(pause());
  }
  settled_elsewhere_ = {};
}

Task<void> OrderWatch::round() {
  co_await tell_waiters();
  co_await tell_others();
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

Task<void> OrderWatch::tell_waiters() {
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

#include "orders/intake/api.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/log.hpp"
#include "net/config.hpp"
#include "net/rate_limit.hpp"
#include "orders/core/canonical.hpp"
#include "orders/core/order.hpp"
#include "orders/intake/api_answers.hpp"
#include "orders/intake/clients.hpp"
#include "orders/intake/config.hpp"
#include "orders/intake/doubt_gate.hpp"
#include "orders/intake/intake.hpp"
#include "orders/intake/order_state.hpp"
#include "pg/error.hpp"

namespace todoke::orders {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kReadMax = 5s;
constexpr std::chrono::milliseconds kHaltRetryAfter = 10s;
constexpr std::chrono::milliseconds kStorageRetryAfter = 30s;  // somebody has to make room
// Beyond what a handler bounds by itself, before the server gives up on it.
constexpr std::chrono::milliseconds kHandlerSlack = 15s;
constexpr double kSecondsInMinute = 60;

// A limit that is off needs a rate all the same.
net::Rate per_minute(std::int64_t posts) {
  const auto count = static_cast<double>(std::max<std::int64_t>(1, posts));
  return {count / kSecondsInMinute, count};
}

net::Rate each_second(std::int64_t orders) {
  const auto count = static_cast<double>(std::max<std::int64_t>(1, orders));
  return {count, count};
}

IntakeOptions intake_options(const ApiParts& parts) {
  IntakeOptions options;
  options.connect = parts.database;
  options.patience = parts.config.get(keys::kAcceptTimeout);
  return options;
}

Answer too_many_in_second() {
  auto answer = refused(422, "LIMIT_EXCEEDED",
                        BadField{"orders.limits.per_second", "orders were taken in this second"});
  answer.response.headers.set("Retry-After", "1");
  return answer;
}

// The trace that the order belongs to: the client's own, or that of the request.
std::optional<std::string> trace_of(const Order& order, const net::Request& request) {
  if (order.trace_id) return order.trace_id;
  if (!parse_traceparent(request.headers.get("traceparent"))) return std::nullopt;
  return std::string(request.headers.get("traceparent"));
}

net::Rate rate_from(const Config& config) {
  return per_minute(config.get(keys::kRatePerMinute));
}

bool rate_is_on(const Config& config) {
  return config.get(keys::kRatePerMinute) > 0 && config.get(net::keys::kRates) == "on";
}

class Api {
 public:
  explicit Api(const ApiParts& parts);

  Task<net::Response> post(net::Request& request);
  Task<net::Response> get(net::Request& request);
  // From anywhere.
  void set_rates(const Config& config) { rate_.set(rate_from(config), rate_is_on(config)); }

  Clients clients;
  const std::shared_ptr<Intake> intake;
  const std::shared_ptr<DoubtGate> doubt;
  const std::shared_ptr<OrderWatch> watch;

 private:
  Task<Answer> accept(net::Request& request);
  Task<Answer> show(net::Request& request);
  // Why an order that is valid would be refused now.
  std::optional<Answer> refusal_of_new(const Order& order);
  Task<std::optional<OrderState>> find(std::string key);

  const std::shared_ptr<const Halts> halts_;
  const pg::Storage& storage_;
  const std::string adapter_;
  const Policy policy_;
  const bool has_rate_;
  net::RateLimiter rate_;
  net::RateLimiter per_second_;
  pg::Pool& pool_;
  metrics::Family<metrics::Counter>& outcomes_;
};

Api::Api(const ApiParts& parts)
    : clients(parts.config.get(keys::kTokensFile)),
      intake(std::make_shared<Intake>(parts.executor, intake_options(parts), parts.clock, parts.storage,
                                      parts.metrics)),
      doubt(std::make_shared<DoubtGate>(parts.executor, parts.config.get(keys::kInDoubtMax), parts.pool,
                                        parts.metrics)),
      watch(std::make_shared<OrderWatch>(parts.executor,
                                         static_cast<std::size_t>(parts.config.get(keys::kWaitersMax)),
                                         parts.pool, parts.listener, parts.metrics)),
      halts_(parts.halts),
      storage_(parts.storage),
      adapter_(parts.adapter),
      policy_(policy_from(parts.config)),
      has_rate_(parts.config.get(keys::kPerSecond) > 0),
      rate_("order", rate_from(parts.config), rate_is_on(parts.config), parts.clock, parts.metrics),
      per_second_("order_limit", each_second(parts.config.get(keys::kPerSecond)), has_rate_, parts.clock,
                  parts.metrics),
      pool_(parts.pool),
      outcomes_(parts.metrics.counters(
          "todoke_orders_posts_total",
          "Posts of orders by what they were told: accepted, replayed or a code.", {"outcome"})) {
  for (const auto outcome : post_outcomes()) outcomes_.with({std::string(outcome)});
}

Task<net::Response> Api::post(net::Request& request) {
  auto answer = co_await accept(request);
  outcomes_.with({std::string(answer.outcome)}).add();
  co_return std::move(answer.response);
}

Task<Answer> Api::accept(net::Request& request) {
  const auto client = clients.who(request.headers.get("Authorization"), request.client_ip);
  if (!client) co_return unauthorized();
  if (const auto verdict = rate_.take(*client); !verdict.allowed) {
    co_return refused_for(verdict.retry_after, 429, "RATE_LIMITED", "too many orders of this client");
  }
  const auto order = parse_order(request.body);
  if (!order) co_return refused(422, "VALIDATION_ERROR", order.error());
  if (request.headers.joined("Idempotency-Key") != order->idempotency_key) {
    const BadField why{"idempotency_key", request.headers.has("Idempotency-Key")
                                              ? "must equal the header Idempotency-Key"
                                              : "must be sent as the header Idempotency-Key, too"};
    co_return refused(422, "IDEMPOTENCY_MISMATCH", why);
  }
  Offer offer{order->idempotency_key, request_digest(*order), stored_json(*order), trace_of(*order, request)};
  if (auto refusal = refusal_of_new(*order)) {
    // An order that was accepted before stays accepted, whatever the rules are now.
    const auto known = co_await find(offer.key);
    if (known) co_return known_key(*known, offer.digest);
    co_return std::move(*refusal);
  }
  // Only new orders count, so that repeated posts don't use up the limit. It costs one more read for each
  // post, where there is such a limit.
  if (has_rate_) {
    const auto known = co_await find(offer.key);
    if (!known && !per_second_.take("").allowed) co_return too_many_in_second();
  }
  const auto hash = key_hash(offer.key);
  const auto outcome = co_await intake->submit(std::move(offer));
  auto answer = told(outcome);
  log::debug("orders", "post", {{"idempotency_key", hash}, {"outcome", answer.outcome}, {"client", *client}});
  co_return answer;
}

std::optional<Answer> Api::refusal_of_new(const Order& order) {
  if (const auto why = policy_.check(order)) return refused(422, why->code, why->why);
  if (is_intake_refused(*halts_->known(), adapter_, order.instrument)) {
    return refused_for(kHaltRetryAfter, 503, "HALTED", "orders are halted; nothing was accepted");
  }
  if (storage_.is_full()) {
    return refused_for(kStorageRetryAfter, 503, "STORAGE_FULL", "storage full; nothing was accepted");
  }
  if (doubt->has_too_much()) {
    return refused(422, "LIMIT_EXCEEDED", BadField{"orders.limits.in_doubt_max", "open orders are in doubt"});
  }
  return std::nullopt;
}

Task<std::optional<OrderState>> Api::find(std::string key) {
  const auto deadline = Deadline::after(kReadMax);
  auto lease = co_await pool_.acquire(deadline);
  const std::vector<std::string> keys{std::move(key)};
  auto states = co_await read_states(*lease, keys, deadline);
  if (states.empty()) co_return std::nullopt;
  co_return std::move(states.front());
}

Task<net::Response> Api::get(net::Request& request) {
  auto answer = co_await show(request);
  co_return std::move(answer.response);
}

Task<Answer> Api::show(net::Request& request) {
  if (!clients.who(request.headers.get("Authorization"), request.client_ip)) co_return unauthorized();
  std::chrono::milliseconds wait{0};
  if (const auto text = request.query_value("wait")) {
    const auto asked = OrderWatch::asked_wait(*text);
    if (!asked) {
      const BadField why{"wait", "must be a duration such as 5s or 250ms"};
      co_return refused(422, "VALIDATION_ERROR", why);
    }
    wait = *asked;
  }
  const auto& key = request.parameters.at("idempotency_key");
  std::optional<OrderState> state;
  if (is_idempotency_key(key)) state = co_await find(key);
  if (!state) co_return refused(404, "NOT_FOUND", "there is no order with this key");
  if (wait > 0ms && !state->is_settled()) {
    auto settled = co_await watch->wait_settled(key, wait);
    if (!settled) settled = co_await find(key);
    if (settled) state = std::move(settled);
  }
  co_return found(*state);
}

// A database that can't be asked is no internal error.
Task<net::Response> guarded(std::shared_ptr<Api> api, Task<net::Response> (Api::*handler)(net::Request&),
                            net::Request& request) {
  std::string failure;
  try {
    co_return co_await ((*api).*handler)(request);
  } catch (const pg::DatabaseError& error) {
    failure = error.what();
  }
  log::warning("orders", "the database can't be asked", {{"error", failure}});
  co_return unavailable().response;
}

}  // namespace

BuiltApi build_api(const ApiParts& parts) {
  const auto api = std::make_shared<Api>(parts);
  if (const auto loaded = api->clients.load(); !loaded) throw UserError(loaded.error().message);

  net::RouteOptions post;
  post.body_bytes_max = static_cast<std::size_t>(parts.config.get(keys::kBodyBytesMax));
  post.content_type = "application/json";
  post.pays_toll = false;
  post.deadline = parts.config.get(keys::kAcceptTimeout) + kHandlerSlack;
  parts.router.add(
      "POST", "/do/order", [api](net::Request& request) { return guarded(api, &Api::post, request); }, post);
  net::RouteOptions get;
  get.deadline = OrderWatch::kWaitMax + kHandlerSlack;
  get.pays_toll = false;
  parts.router.add(
      "GET", "/do/order/{idempotency_key}",
      [api](net::Request& request) { return guarded(api, &Api::get, request); }, get);

  const auto on_change = [api](const Config& config) { api->set_rates(config); };
  const auto read_tokens = [api] {
    if (const auto loaded = api->clients.load(); !loaded) {
      log::error("orders", "the tokens were not changed", {{"error", loaded.error().message}});
    }
  };
  return {{api->doubt, api->intake}, api->watch, on_change, read_tokens, [api] { api->watch->wake(); }};
}

}  // namespace todoke::orders

// A worker that is stopped with orders in its hands, some at the broker and some that it has not begun with,
// until they belong to another claim; then it goes on with the answers that have come meanwhile. It must
// settle nothing, give nothing back and begin nothing: the properties tell.
#include <fmt/format.h>

#include "run.hpp"
#include "settings.hpp"
#include "watch.hpp"

namespace todoke::test {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// More than a worker can have at the broker.
constexpr int kInHands = kConcurrency + 2;
constexpr auto kFilledWithin = 2s;
constexpr auto kTakenWithin = 4s;
constexpr auto kNoticedWithin = 2s;

// Orders of the zombie that have a newer claim.
constexpr const char* kSomeOf =
    "EXISTS (SELECT FROM orders.outbox_orders o JOIN (VALUES {}) AS t (id, claim_no) USING (id)"
    " WHERE o.claim_no > t.claim_no AND {})";

}  // namespace

bool SoakRun::await(const std::string& condition, std::chrono::milliseconds most) {
  const auto until = Clock::now() + most;
  while (Clock::now() < until) {
    const auto rows = link_.try_rows("SELECT 1 WHERE " + condition);
    if (rows && !rows->empty()) return true;
    rest();
  }
  return false;
}

// Stops the worker that has the most.
std::optional<SoakRun::Hands> SoakRun::stop_with_full_hands() {
  constexpr int kOrders = 24;
  nodes_->thaw();
  link_.rows("SELECT 1");
  nodes_->revive();
  broker_.hold({});
  for (int i = 0; i < kOrders; ++i) clients_->post(fmt::format("zombie-key-{}", extra_keys_++), 1);
  await(fmt::format("EXISTS (SELECT FROM orders.outbox_orders WHERE status = 'sending' GROUP BY locked_by"
                    " HAVING count(*) >= {})",
                    kInHands),
        kFilledWithin);
  const auto most = link_.try_rows(
      "SELECT locked_by FROM orders.outbox_orders WHERE status = 'sending' GROUP BY locked_by"
      " ORDER BY count(*) DESC LIMIT 1");
  const auto index = most && most->size() == 1 ? nodes_->by_worker(most->front()) : std::nullopt;
  if (!index || !nodes_->is_ready(*index)) return std::nullopt;
  nodes_->freeze(*index, kLease);
  Hands hands{*index, nodes_->worker(*index), {}, {}, {}};
  const auto rows = link_.try_rows(
      fmt::format("SELECT format('(%s,%s) %s', id, claim_no, idempotency_key) FROM orders.outbox_orders"
                  " WHERE status = 'sending' AND locked_by LIKE '{}%'",
                  hands.worker));
  for (const auto& row : rows.value_or(std::vector<std::string>())) {
    const auto split = row.find(' ');
    hands.tickets += (hands.tickets.empty() ? "" : ",") + row.substr(0, split);
    hands.keys.insert(row.substr(split + 1));
  }
  if (hands.keys.empty()) return std::nullopt;
  for (const auto& key : broker_.waiting()) {
    if (hands.keys.contains(key)) hands.at_broker += (hands.at_broker.empty() ? "'" : ",'") + key + "'";
  }
  return hands;
}

std::optional<SoakRun::Hands> SoakRun::stop_until_taken() {
  auto hands = stop_with_full_hands();
  broker_.release();
  if (!hands) return std::nullopt;
  broker_.hold(hands->keys);
  if (await(fmt::format(fmt::runtime(kSomeOf), hands->tickets, "o.status = 'sending'"), kTakenWithin))
    return hands;
  nodes_->thaw();
  return std::nullopt;
}

// It has spoken of one of the claims that it had, whatever it said.
void SoakRun::await_noticed(const Hands& hands) {
  await(fmt::format("EXISTS (SELECT FROM orders.sends WHERE worker LIKE '{}%' AND outcome <> 'LEASE_EXPIRED'"
                    " AND (outbox_id, claim_no) IN (VALUES {}))",
                    hands.worker, hands.tickets),
        kNoticedWithin);
}

// The broker keeps the next holder waiting: while the zombie acts, its orders are somebody else's and
// unsettled.
void SoakRun::zombie() {
  const auto hands = stop_until_taken();
  if (!hands) return broker_.release();
  nodes_->resume(hands->index);
  tell(fmt::format("node {} went on when its {} orders were another's", hands->index, hands->keys.size()));
  ++reached_["zombie"];
  await_noticed(*hands);
  broker_.release();
}

// The next holder fails and is stopped as well, and the zombie claims its own orders anew before it renews,
// settles or gives back what it had: those three wait at a gate.
void SoakRun::zombie_of_itself() {
  const auto hands = stop_until_taken();
  const bool is_free =
      hands && await(fmt::format(fmt::runtime(kSomeOf), hands->tickets, "o.status IN ('failed', 'pending')"),
                     kTakenWithin);
  broker_.release();
  if (!is_free) return nodes_->thaw();
  for (std::size_t i = 0; i < kNodes; ++i) nodes_->freeze(i, kLease);
  gate_.rows(fmt::format("SELECT pg_advisory_lock({})", kGateBase + kLetGo));
  nodes_->resume(hands->index);
  const bool is_claimed = await(
      fmt::format(fmt::runtime(kSomeOf), hands->tickets,
                  fmt::format("o.status = 'sending' AND starts_with(o.locked_by, '{}')", hands->worker)),
      kTakenWithin);
  gate_.close();
  if (is_claimed) {
    tell(fmt::format("node {} went on when some of its {} orders were its own again", hands->index,
                     hands->keys.size()));
    ++reached_["zombie of itself"];
    await_noticed(*hands);
  }
  nodes_->thaw();
}

}  // namespace todoke::test

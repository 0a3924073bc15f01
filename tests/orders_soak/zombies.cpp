// A worker that is stopped with orders in its hands, some at the broker and some that it has not begun with,
// until they belong to another claim; then it goes on with the answers that have come meanwhile. It must
// settle nothing, give nothing back and begin nothing: the properties tell.
#include <fmt/format.h>

#include "run.hpp"
#include "settings.hpp"

namespace todoke::test {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// More than a worker can have at the broker.
constexpr int kInHands = kConcurrency + 2;
constexpr auto kFilledWithin = 2s;
constexpr auto kTakenWithin = 4s;
constexpr auto kNoticedWithin = 2s;

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
  const auto hands = stop_with_full_hands();
  broker_.release();
  if (!hands) return;
  broker_.hold(hands->keys);
  const bool is_taken = await(
      fmt::format("EXISTS (SELECT FROM orders.outbox_orders o JOIN (VALUES {}) AS t (id, claim_no) USING (id)"
                  " WHERE o.status = 'sending' AND o.claim_no > t.claim_no AND o.locked_by NOT LIKE '{}%')",
                  hands->tickets, hands->worker),
      kTakenWithin);
  nodes_->resume(hands->index);
  if (is_taken) {
    tell(fmt::format("node {} went on when its {} orders were another's", hands->index, hands->keys.size()));
    ++reached_["zombie"];
    await_noticed(*hands);
  }
  broker_.release();
}

// Nobody else is there. It must take its lapsed orders over before it renews their leases, settles those that
// were at the broker and gives the others back: each of these three statements goes through its rows in the
// order of their ids, so it waits at the first two of them, which are being changed, while taking over leaves
// them out. Those that waited go on with what the change has left, which is their row still. No answer has
// come to it.
void SoakRun::zombie_of_itself() {
  const auto hands = stop_with_full_hands();
  if (!hands) return broker_.release();
  for (std::size_t i = 0; i < kNodes; ++i) nodes_->freeze(i, kLease);
  const auto lapsed = Clock::now() + kLease + 100ms;
  while (Clock::now() < lapsed) rest();
  gate_.rows(fmt::format(
      "BEGIN; SET LOCAL orders.actor = 'soak'; UPDATE orders.outbox_orders SET updated_at = updated_at"
      " WHERE id IN (SELECT id FROM (SELECT o.id, row_number() OVER (PARTITION BY o.idempotency_key IN ({1})"
      " ORDER BY o.id) AS place FROM orders.outbox_orders o JOIN (VALUES {0}) AS t (id, claim_no)"
      " USING (id, claim_no)) o WHERE place <= 2)",
      hands->tickets, hands->at_broker.empty() ? "''" : hands->at_broker));
  nodes_->resume(hands->index);
  const bool is_taken = await(
      fmt::format("EXISTS (SELECT FROM orders.outbox_orders o JOIN (VALUES {}) AS t (id, claim_no) USING (id)"
                  " WHERE o.status = 'sending' AND o.claim_no > t.claim_no AND o.locked_by LIKE '{}%')",
                  hands->tickets, hands->worker),
      kTakenWithin);
  broker_.release();
  gate_.try_rows("COMMIT");
  gate_.close();
  if (is_taken) {
    tell(fmt::format("node {} took its own {} orders over", hands->index, hands->keys.size()));
    ++reached_["zombie of itself"];
    await_noticed(*hands);
  }
  nodes_->thaw();
}

}  // namespace todoke::test

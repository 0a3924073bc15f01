// The kill list: a process, a backend or the server dies exactly there. Gates (watch.hpp) and the proxy hold
// the program at the place until the blow has fallen.
#include <csignal>
#include <future>

#include <fmt/format.h>

#include "run.hpp"
#include "settings.hpp"
#include "watch.hpp"

namespace todoke::test {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// Lapsed leases are looked for every second; a node that starts archives at once, and takes a while to start
// on a machine with much to do.
constexpr auto kReachedWithin = 12s;
// A bound only: the test lets it go on after a query.
constexpr auto kBrokerWaits = 2s;

std::string kill_name(int number) {
  return fmt::format("K{}", number);
}

std::string advisory(int gate) {
  return fmt::format("l.locktype = 'advisory' AND l.objid = {}", kGateBase + gate);
}

}  // namespace

std::vector<std::string> places() {
  std::vector<std::string> all{"zombie", "zombie of itself", "full disk", "outage"};
  for (int number = 1; number <= kKillPoints; ++number) all.push_back(kill_name(number));
  return all;
}

// What an earlier fault has left behind may keep the program from getting there at the first time.
void SoakRun::kill_point(int number) {
  constexpr int kTries = 3;
  auto& count = reached_[kill_name(number)];
  const int before = count;
  for (int i = 0; i < kTries && count == before; ++i) {
    link_.rows("SELECT 1");
    nodes_->revive();
    try_kill_point(number);
  }
  if (count == before) missed_ += fmt::format("{} was not reached\n", kill_name(number));
}

void SoakRun::try_kill_point(int number) {
  switch (number) {
    case 1:
      return kill_at_gate(number, kBeforeAccept);
    case 2:
      return kill_at_gate(number, kBetweenInserts);
    case 3:
      return kill_at_gate(number, kAcceptCommit);
    case 4:
      return kill_unseen(number, "accept_orders");
    case 5:
      return kill_unseen(number, "claim");
    case 6:
      return kill_at_broker(number, Broker::Moment::arrived);
    case 7:
      return kill_at_broker(number, Broker::Moment::answered);
    case 8:
      return kill_at_gate(number, chance(random_, 50) ? kSettle : kSettleCommit);
    case 9:
      return kill_unseen(number, "settle");
    case 10:
      return kill_taker();
    case 11:
      return kill_archiver();
    default:
      return kill_partitioner();
  }
}

std::optional<SoakRun::Waiter> SoakRun::await_waiter(const std::string& lock_condition) {
  const auto sql = fmt::format(
      "SELECT a.pid || ' ' || a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid)"
      " WHERE NOT l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = "
      "current_database()) AND {}"
      " ORDER BY random() LIMIT 1",
      lock_condition);
  const auto until = Clock::now() + kReachedWithin;
  while (Clock::now() < until) {
    const auto rows = link_.try_rows(sql);
    if (rows && rows->size() == 1) {
      const auto split = rows->front().find(' ');
      return Waiter{rows->front().substr(0, split), rows->front().substr(split + 1)};
    }
    rest();
  }
  return std::nullopt;
}

// A backend that waits in COMMIT commits although its node is dead, so the database is hurt as often as a
// node: only then is lost what was not committed.
void SoakRun::hurt(int number, const Waiter& waiter) {
  ++reached_[kill_name(number)];
  const auto index = nodes_->by_session(waiter.session);
  const int blow = pick(random_, 1, 100);
  if (blow <= 35 && index) {
    tell(fmt::format("K{} node {} killed", number, *index));
    nodes_->kill(*index);
  } else if (blow <= 45) {
    tell(fmt::format("K{} all nodes killed", number));
    for (std::size_t i = 0; i < kNodes; ++i) nodes_->kill(i);
  } else if (blow <= 70) {
    tell(fmt::format("K{} session ended", number));
    link_.try_rows(fmt::format("SELECT pg_terminate_backend({})", waiter.pid));
  } else if (blow <= 90) {
    tell(fmt::format("K{} backend killed", number));
    ::kill(std::stoi(waiter.pid), SIGKILL);
  } else {
    tell(fmt::format("K{} postmaster killed", number));
    server_.kill_postmaster();
  }
}

void SoakRun::kill_at_gate(int number, int gate, const std::function<void()>& provoke) {
  gate_.rows(fmt::format("SELECT pg_advisory_lock({})", kGateBase + gate));
  if (provoke) provoke();
  if (const auto waiter = await_waiter(advisory(gate))) hurt(number, *waiter);
  gate_.close();
}

// The statement is done in the database and its answer held back. Whoever asks next is the victim.
void SoakRun::kill_unseen(int number, const std::string& statement) {
  const auto index = any_node();
  auto& proxy = nodes_->proxy(index);
  proxy.hold_answers_after(std::string(1, '\0') + statement + "_");
  proxy.await_held();
  // Long enough for it to be done there.
  pause(5, 60);
  tell(fmt::format("K{} node {} killed", number, index));
  ++reached_[kill_name(number)];
  nodes_->kill(index);
}

// The broker waits until the worker whose order it has is dead; or until it is known who that is, answers,
// and the worker dies right after.
void SoakRun::kill_at_broker(int number, Broker::Moment moment) {
  auto key = std::make_shared<std::promise<std::string>>();
  auto done = std::make_shared<std::promise<void>>();
  broker_.at_next(moment, [key, until = std::make_shared<std::future<void>>(done->get_future())](
                              const std::string& order) {
    key->set_value(order);
    until->wait_for(kBrokerWaits);
  });
  std::optional<std::size_t> index;
  if (auto arrived = key->get_future(); arrived.wait_for(kReachedWithin) == std::future_status::ready) {
    const auto worker = link_.try_rows(
        fmt::format("SELECT coalesce(locked_by, '') FROM orders.outbox_orders WHERE idempotency_key = '{}'",
                    arrived.get()));
    if (worker && worker->size() == 1) index = nodes_->by_worker(worker->front());
  }
  if (moment == Broker::Moment::answered) {
    done->set_value();
    pause(0, 3);
  }
  if (index) {
    tell(fmt::format("K{} node {} killed", number, *index));
    ++reached_[kill_name(number)];
    nodes_->kill(*index);
  }
  if (moment == Broker::Moment::arrived) done->set_value();
}

// Somebody must have vanished first, with an order in his hands.
void SoakRun::kill_taker() {
  kill_at_gate(10, kTakeOver, [this] { kill_at_broker(6, Broker::Moment::arrived); });
}

// Orders of two weeks ago, and a node that starts and finds them.
void SoakRun::kill_archiver() {
  constexpr int kOrders = 5;
  const auto until = Clock::now() + kSettledWithin;
  std::string keys;
  for (int i = 0; i < kOrders; ++i) {
    const auto key = fmt::format("aged-key-{}", extra_keys_++);
    // Nodes whose disk was full a moment ago take nothing in for some seconds.
    while (clients_->post(key, 1) / 100 != 2 && Clock::now() < until) rest();
    keys += fmt::format("{}'{}'", i == 0 ? "" : ",", key);
  }
  const auto settled = fmt::format(
      "SELECT count(*) FROM orders.outbox_orders WHERE idempotency_key IN ({}) AND status IN ('succeeded', "
      "'aborted')",
      keys);
  // An outage may have opened breakers.
  while (Clock::now() < until) {
    const auto count = link_.try_rows(settled);
    if (count && count->front() == std::to_string(kOrders)) break;
    rest();
  }
  link_.rows(fmt::format(
      "BEGIN; SET LOCAL orders.actor = 'soak';"
      "INSERT INTO soak.aged SELECT idempotency_key FROM orders.outbox_orders"
      " WHERE idempotency_key IN ({0}) AND status IN ('succeeded', 'aborted') ON CONFLICT DO NOTHING;"
      "UPDATE orders.outbox_orders SET created_at = created_at - interval '14 days', updated_at = updated_at "
      "- interval "
      "'14 days' WHERE idempotency_key IN (SELECT key FROM soak.aged);"
      "UPDATE orders.idempo_ledger SET first_seen_at = first_seen_at - interval '14 days', expires_at = "
      "expires_at - "
      "interval '14 days' WHERE idempotency_key IN (SELECT key FROM soak.aged); COMMIT",
      keys));
  kill_at_gate(11, chance(random_, 50) ? kArchive : kPurge, [this] {
    const auto index = any_node();
    nodes_->kill(index);
    nodes_->start(index);
  });
}

// A node that starts drops a partition of the journal that is too old, or makes next month's anew.
void SoakRun::kill_partitioner() {
  if (chance(random_, 50)) {
    link_.rows(
        "CREATE TABLE IF NOT EXISTS orders.sends_2020_01 PARTITION OF orders.sends"
        " FOR VALUES FROM ('2020-01-01') TO ('2020-02-01')");
    gate_.rows("BEGIN; LOCK TABLE orders.sends_2020_01 IN ACCESS SHARE MODE");
    return kill_starting("l.relation = 'orders.sends_2020_01'::regclass");
  }
  link_.rows(
      "DO $$ DECLARE next text := to_char((now() AT TIME ZONE 'UTC') + interval '1 month', "
      "'\"sends_\"YYYY_MM');"
      "BEGIN IF to_regclass('orders.' || next) IS NULL THEN RETURN; END IF;"
      "EXECUTE format('ALTER TABLE orders.sends DETACH PARTITION orders.%I', next);"
      "EXECUTE format('DROP TABLE orders.%I', next); END $$");
  gate_.rows("BEGIN; LOCK TABLE orders.sends IN SHARE UPDATE EXCLUSIVE MODE");
  kill_starting("l.relation = 'orders.sends'::regclass");
}

void SoakRun::kill_starting(const std::string& lock_condition) {
  const auto index = any_node();
  nodes_->kill(index);
  nodes_->start(index);
  const auto waiter = await_waiter(lock_condition);
  if (waiter) hurt(12, *waiter);
  gate_.close();
}

}  // namespace todoke::test

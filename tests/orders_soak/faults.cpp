// Faults at any moment, for anybody.
#include <csignal>

#include <fmt/format.h>

#include "run.hpp"
#include "settings.hpp"

namespace todoke::test {
namespace {

constexpr const char* kAnyBackend =
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'soak-%'"
    " ORDER BY random() LIMIT 1";

}  // namespace

void SoakRun::fault() {
  const auto index = any_node();
  switch (pick(random_, 0, 9)) {
    case 0:
    case 1:
      tell(fmt::format("node {} killed", index));
      nodes_->kill(index);
      pause(0, 500);
      nodes_->start(index);
      break;
    case 2:
    case 3:
      nodes_->thaw();
      tell(fmt::format("node {} stopped beyond its lease", index));
      nodes_->freeze(index, kLease + std::chrono::milliseconds(pick(random_, 300, 1'000)));
      break;
    case 4:
      tell(fmt::format("node {} cut from the database", index));
      nodes_->proxy(index).set_reachable(false);
      pause(0, 600);
      nodes_->proxy(index).set_reachable(true);
      break;
    case 5:
      if (const auto victim = link_.try_rows(kAnyBackend); victim && victim->size() == 1) {
        tell("a backend of Postgres killed");
        ::kill(std::stoi(victim->front()), SIGKILL);
      }
      break;
    case 6:
      tell("the postmaster killed");
      server_.kill_postmaster();
      break;
    case 7:
      outage();
      break;
    case 8:
      requeue();
      lose_answers(chance(random_, 50) ? "claim" : "settle", index);
      break;
    default:
      tell(fmt::format("node {} ended in order", index));
      nodes_->stop(index);
      nodes_->start(index);
      break;
  }
}

// P14. Until its breaker opens a worker can have four orders that fail until their attempts are used up, the
// fifth opens it; what is under way is under way; then probes, a second apart at least.
void SoakRun::outage() {
  constexpr int kOrders = 60;
  constexpr int kToOpen = 5;
  constexpr int kSeconds = 2;
  constexpr int kForEach = (kToOpen - 1) * kAttemptsMax + 1 + 2 * kConcurrency + kSeconds + 1;
  nodes_->revive();
  const int starts_before = nodes_->starts();
  broker_.begin_outage();
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < kOrders; ++i) clients_->post(fmt::format("outage-key-{}", extra_keys_++), 1);
  while (std::chrono::steady_clock::now() - began < std::chrono::seconds(kSeconds)) rest();
  const auto took = std::chrono::ceil<std::chrono::seconds>(std::chrono::steady_clock::now() - began).count();
  const int requests = broker_.end_outage();
  const auto workers = static_cast<int>(kNodes) + nodes_->starts() - starts_before;
  const auto most = workers * (kForEach + static_cast<int>(took) - kSeconds);
  tell(fmt::format("an outage of the broker ({} requests, at most {})", requests, most));
  ++reached_["outage"];
  if (requests > most) {
    problems_ += fmt::format("P14 {} requests in an outage of {} s, {} are allowed\n", requests, took, most);
  }
}

// Nothing can be accepted or settled, and heartbeats go on.
void SoakRun::fill_disk() {
  nodes_->revive();
  link_.rows("INSERT INTO soak.full_disk VALUES (true) ON CONFLICT DO NOTHING");
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(pick(random_, 300, 2'000));
  while (std::chrono::steady_clock::now() < until) rest();
  link_.rows("DELETE FROM soak.full_disk");
  const auto refusals =
      link_.rows("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM soak.refusals").front();
  tell(fmt::format("a full disk ({} refusals)", refusals));
  if (refusals != "0") ++reached_["full disk"];
}

// By the SQL that operators are given.
void SoakRun::requeue() {
  const auto rows = link_.try_rows(
      "UPDATE orders.outbox_orders SET status='pending', attempts=0, last_error_code=NULL, "
      "last_error_msg=NULL,"
      " next_run_at=NULL, updated_at=now() WHERE id IN (SELECT id FROM orders.outbox_orders WHERE status = "
      "'aborted' AND idempotency_key NOT IN (SELECT key FROM soak.left_over)"
      " LIMIT 3) RETURNING id");
  if (rows && !rows->empty()) tell(fmt::format("{} aborted orders requeued by hand", rows->size()));
}

// What it asks for is done, and it never hears of it.
void SoakRun::lose_answers(const std::string& statement, std::size_t index) {
  tell(fmt::format("answers to '{}' of node {} lost", statement, index));
  auto& proxy = nodes_->proxy(index);
  proxy.hold_answers_after(std::string(1, '\0') + statement + "_");
  pause(300, 700);
  proxy.hold_answers_after("");
  proxy.cut();
}

}  // namespace todoke::test

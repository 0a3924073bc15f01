// The outbox table for the queue's worker: thin, one statement for each call (worker.sql has the rules).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/log_rate.hpp"
#include "orders/core/db_link.hpp"
#include "orders/core/halts.hpp"
#include "orders/worker/metrics.hpp"
#include "orders/worker/order_job.hpp"
#include "orders/worker/tickets.hpp"
#include "queue/port.hpp"

namespace todoke::orders {

struct SqlPortOptions {
  std::string worker;   // host:pid:random, as locked_by has it
  std::string adapter;  // orders for others are left alone
  int attempts_max = 6;
  bool in_order = false;                                 // orders.serialize_by = instrument
  std::function<bool()> may_take = [] { return true; };  // asked before orders are claimed or taken over
  std::function<void()> on_settled = [] {};
  std::chrono::milliseconds statement_max{10'000};
  // Finished rows stay for a look; aborted ones until somebody has had the time to requeue them.
  std::chrono::seconds keep_succeeded{24 * 3600};
  std::chrono::seconds keep_aborted{7 * 24 * 3600};
  std::chrono::seconds keep_ledger{48 * 3600};
  std::int64_t history_months = 0;  // of the journal and the archives; 0: for ever
  // Lines in a second that tell of a success; those beyond are written at debug, and counted in the next one.
  std::uint64_t success_lines_max = 20;
};

class SqlPort final : public queue::Port {
 public:
  SqlPort(const pg::ConnectOptions& connect, SqlPortOptions options, const Halts& halts, const Clock& clock,
          OrderMetrics& metrics);

  Task<std::size_t> promote_due(std::size_t most) override;
  Task<queue::Jobs> claim(std::size_t most) override;
  [[nodiscard]] bool passes_rows_over() const override { return passes_rows_over_; }
  Task<queue::Jobs> take_over(std::chrono::milliseconds lease, std::size_t most,
                              const std::vector<queue::Ticket>& held) override;
  Task<void> give_back_unknown(const std::vector<queue::Ticket>& held) override;
  Task<queue::LetGo> settle(const queue::Jobs& jobs) override;
  Task<queue::LetGo> give_back(const queue::Jobs& jobs) override;
  Task<void> refund(const std::map<queue::JobId, int>& tries) override;
  Task<std::vector<queue::Kept>> heartbeat(const std::vector<queue::Ticket>& tickets) override;
  Task<bool> archive() override;

  Task<void> ensure_partitions();
  void close();

 private:
  using Held = std::vector<OrderJob*>;  // in the order of tickets

  [[nodiscard]] Deadline deadline() const { return Deadline::after(options_.statement_max); }
  [[nodiscard]] queue::Jobs jobs_from(const pg::Result& rows, SteadyTime asked, bool lapsed) const;

  // Each leaves in `jobs` those that it could not let go: not ours any more, locked by somebody else, or to
  // be settled in another way. `diverted` gets those whose ledger has the last word.
  Task<void> settle_tries(Held& jobs, Held& diverted);
  Task<void> follow_ledger(Held& jobs);
  Task<void> give_back_rows(Held& jobs);
  Task<pg::Result> run_settle(const Held& jobs);
  // Those that are ours still.
  Task<Tickets> still_held(DbLink& link, Tickets tickets);
  // The tickets of those that were fenced.
  Task<Tickets> journal_fenced(const Held& jobs);
  void tell_settled(const OrderJob& job);
  void tell_followed(const OrderJob& job, const pg::Row& row);

  SqlPortOptions options_;
  const Halts& halts_;
  const Clock& clock_;
  OrderMetrics& metrics_;
  DbLink taking_;
  DbLink letting_go_;
  DbLink keeping_;
  DbLink house_;
  bool passes_rows_over_ = false;
  std::int64_t archive_after_ = 0;  // where the pass over the outbox stands
  SystemTime purge_after_{};        // where the pass over the ledger stands
  std::string purge_after_key_;
  SteadyTime partitions_at_{};            // when they were made last
  std::optional<SteadyTime> history_at_;  // when old ones were dropped last
  LogRate success_lines_;
};

}  // namespace todoke::orders

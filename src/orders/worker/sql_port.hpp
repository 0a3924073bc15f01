// The outbox table for the queue's worker: one statement for each call (worker.sql has the rules).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/log_rate.hpp"
#include "orders/core/db_link.hpp"
#include "orders/core/halts.hpp"
#include "orders/worker/metrics.hpp"
#include "orders/worker/order_job.hpp"
#include "queue/port.hpp"

namespace todoke::orders {

struct SqlPortOptions {
  std::string worker;   // host:pid:random, as locked_by has it
  std::string adapter;  // orders for others are left alone
  int attempts_max = 6;
  bool in_order = false;                                  // orders.serialize_by = instrument
  std::function<bool()> may_claim = [] { return true; };  // asked before orders are claimed or taken over
  std::function<void()> on_settled = [] {};
  std::chrono::milliseconds statement_max{10'000};
  // Lines in a second that tell of a success; those beyond are written at debug, and counted in the next one.
  std::uint64_t success_lines_max = 20;
};

class SqlPort final : public queue::Port {
 public:
  SqlPort(const pg::ConnectOptions& connect, SqlPortOptions options, const Halts& halts, const Clock& clock,
          OrderMetrics& metrics);

  Task<queue::Jobs> claim(std::size_t most) override;
  Task<queue::Jobs> take_over(std::chrono::milliseconds lease, std::size_t most,
                              const std::vector<queue::Ticket>& held) override;
  Task<void> give_back_unknown(const std::vector<queue::Ticket>& held) override;
  Task<std::vector<queue::Fate>> settle(const queue::Jobs& jobs) override;
  Task<void> uncount(const std::map<queue::JobId, int>& tries) override;
  Task<std::vector<queue::Lease>> heartbeat(const std::vector<queue::Ticket>& tickets) override;
  [[nodiscard]] bool passes_rows_over() const override { return passes_rows_over_; }

  void close();

 private:
  [[nodiscard]] Deadline deadline() const { return Deadline::after(options_.statement_max); }
  [[nodiscard]] queue::Jobs jobs_from(const pg::Result& rows, SteadyTime asked, bool lapsed) const;
  Task<pg::Result> run_settle(const queue::Jobs& jobs);
  Task<void> make_partitions();
  void report(const OrderJob& job, const pg::Row& row);
  void report_settled(const OrderJob& job);
  void report_followed(const OrderJob& job, const pg::Row& row);

  SqlPortOptions options_;
  const Halts& halts_;
  const Clock& clock_;
  OrderMetrics& metrics_;
  DbLink claiming_;
  DbLink settling_;
  DbLink keeping_;
  bool passes_rows_over_ = false;
  LogRate success_lines_;
};

}  // namespace todoke::orders

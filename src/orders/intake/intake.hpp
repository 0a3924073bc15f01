// Accepts orders: ledger `accepted` and outbox `pending` in one transaction, and the answer after its commit.
//
// Posts that come while a commit is under way go into the next one together (base/group_committer.hpp): one
// connection, batches of at most `batch_orders_max`. Bounded: it refuses posts beyond `queue_orders_max`
// waiting ones, those that have waited for `patience`, and all of them while the database has no room
// (pg/storage.hpp).
//
// A commit whose answer is lost is repeated, which finds out by itself whether the first one happened: a key
// that is there with the same digest counts as accepted by this post.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/group_committer.hpp"
#include "base/hash_table.hpp"
#include "base/metrics.hpp"
#include "base/service.hpp"
#include "orders/intake/intake_plan.hpp"
#include "pg/connection.hpp"
#include "pg/storage.hpp"

namespace todoke::orders {

struct IntakeOptions {
  pg::ConnectOptions connect;
  // Doubling it gains less than a tenth, and each post of a batch waits for all of it.
  std::size_t batch_orders_max = 256;
  // About a second's worth: a client that would wait longer gets its refusal at once.
  std::size_t queue_orders_max = 8'192;
  std::chrono::milliseconds patience{5'000};
};

// A post that waits for its verdict.
struct IntakeTicket;
using IntakeTicketPtr = std::shared_ptr<IntakeTicket>;

class Intake final : public Service, private GroupCommitter<IntakeTicketPtr>::Work {
 public:
  Intake(const Executor& executor, IntakeOptions options, const Clock& clock, pg::Storage& storage,
         metrics::Registry& registry);
  ~Intake() override;

  // On any executor that runs one handler at a time. Ends within `patience` and a little.
  Task<IntakeOutcome> submit(Offer offer);

  [[nodiscard]] std::string_view name() const override { return "orders_intake"; }
  Task<void> start() override;
  // At stop() it commits the queued posts, then returns.
  Task<void> run() override;
  void stop() override;

 private:
  using Committer = GroupCommitter<IntakeTicketPtr>;
  using Tickets = Committer::Items;

  Tickets next_batch(std::deque<IntakeTicketPtr>& queue) override;
  Task<void> commit(Tickets& part) override;
  [[nodiscard]] bool refuses_data(const std::exception_ptr& failure) const override;
  Task<void> mend(std::exception_ptr failure, Tickets& part) override;
  [[nodiscard]] SteadyTime patience_ends(const IntakeTicketPtr& ticket) const override;
  void fail(IntakeTicketPtr& ticket, CommitFailure why, const std::exception_ptr& failure) override;

  Task<void> connect(Deadline deadline);
  [[nodiscard]] std::chrono::nanoseconds time_for_try(const Tickets& part) const;
  static std::vector<std::size_t> firsts(const Tickets& part);
  static void tell_taken(Tickets& part, const HashSet<std::string>& taken);
  Task<void> tell_known(Tickets& part, Deadline deadline);
  Task<void> wake_workers();

  IntakeOptions options_;
  const Clock& clock_;
  pg::Storage& storage_;
  std::unique_ptr<pg::Connection> connection_;
  metrics::Histogram& batch_orders_;
  metrics::Histogram& commit_seconds_;
  Committer committer_;
};

}  // namespace todoke::orders

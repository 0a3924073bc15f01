// This process's part in a FIX session. Every worker runs one of these; one of them at a time has the
// session, by a lease in the database that carries the session's numbers. The others look every kLookEvery
// whether it is free.
//
// The owner writes everything in rounds, one transaction for all that has gathered: orders that are about to
// leave, reports that came, the numbers, and with each the lease. An order leaves only after the round that
// wrote it down; no try sees a report before it is stored. The owner repeats a round that fails until the
// lease may have lapsed. Then it gives the session up, and the broker sends the reports again that were not
// stored, because the number in was not stored either.
//
// All on one executor; the session's own threads only fill the inbox.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/loops.hpp"
#include "base/metrics.hpp"
#include "base/service.hpp"
#include "orders/brokers/fix/config.hpp"
#include "orders/brokers/fix/engine/session.hpp"
#include "orders/brokers/fix/inbox.hpp"
#include "orders/brokers/fix/ledger.hpp"
#include "orders/brokers/fix/store.hpp"

namespace todoke::orders {

// Reports and answers on one order, for a try that waits for them.
struct FixAwaited {
  explicit FixAwaited(const Executor& executor) : changed(executor) {}
  std::vector<fix::Report> reports;  // all that are stored, unless answers_only
  std::vector<fix::Report> answers;  // to status requests that came meanwhile
  bool answers_only = false;         // what is stored belongs to another order
  bool keeps_answers = false;        // they are about the order that was written down: they are stored
  std::optional<fix::Refused> refused;
  std::optional<fix::Sent> sent;
  Signal changed;
};

struct FixLinkParts {
  Executor executor;
  const Clock& clock;
  pg::Pool& pool;
  pg::ConnectOptions database;
  HealthBoard& health;
  metrics::Registry& metrics;
  std::string worker;  // as locked_by has it
};

class FixLink final : public Service {
 public:
  // A free session is found by a waiting worker within this time.
  static constexpr std::chrono::milliseconds kLookEvery{1'000};
  // Stopping: the answer to the Logout, and QuickFIX, which waits up to five seconds for a broker that is
  // gone.
  static constexpr std::chrono::milliseconds kStopMax{10'000};
  static constexpr std::chrono::seconds kKeep{90 * 24 * 3600};

  FixLink(FixOptions options, const FixLinkParts& parts);
  ~FixLink() override;

  [[nodiscard]] std::string_view name() const override { return "fix link"; }
  [[nodiscard]] bool essential() const override { return false; }
  Task<void> start() override;
  Task<void> run() override;
  void stop() override;

  [[nodiscard]] const FixOptions& options() const { return options_; }
  // Whether a worker of this process should claim orders: not while nothing could leave, and not while it
  // stops.
  [[nodiscard]] bool can_send_now() const;
  // When the session was last logged on or its numbers were reset: reports may have been lost before.
  [[nodiscard]] SteadyTime speaks_since() const { return speaks_since_; }
  // Whether a message could leave now; `why` gets the reason where none can.
  [[nodiscard]] bool is_open(std::string& why) const;

  // Collects the reports under the ClOrdID as long as the handle lives.
  std::shared_ptr<FixAwaited> await(const std::string& cl_ord_id);
  // Whether a call waits for its reports; a second one would get those of the first.
  [[nodiscard]] bool is_awaited(const std::string& cl_ord_id) const;
  // Writes an order down. False: it must not be sent.
  Task<bool> write_down(FixEntry entry, Deadline deadline);
  // False: the queue is full. Tells `awaited` whether the message left.
  bool send(const fix::NewOrder& order, Deadline deadline, const std::shared_ptr<FixAwaited>& awaited);
  bool send(const fix::StatusRequest& request, Deadline deadline, const std::shared_ptr<FixAwaited>& awaited);
  // Stores the broker's answer on an order that was written down, in the place of its last answer.
  void keep_status(fix::Report answer);
  Task<FixStored> stored(const std::string& cl_ord_id, std::int64_t outbox_id, Deadline deadline) {
    return store_.stored(cl_ord_id, outbox_id, deadline);
  }

 private:
  // An order that waits to be written down.
  struct Waiting {
    explicit Waiting(const Executor& executor) : ended(executor) {}
    FixEntry entry;
    bool is_written = false;
    Signal ended;
  };
  enum class End { stopped, lost };

  // True: this worker had the session, and has it no more.
  Task<bool> own_if_free();
  Task<std::optional<FixOwned>> claim_session();
  Task<void> own(FixOwned owned);
  void open_session(const FixOwned& owned);
  [[nodiscard]] fix::Events events_of_session();
  Task<End> run_session(std::int64_t epoch);
  // False: the session is lost.
  Task<bool> round(std::int64_t epoch);
  Task<void> give_session_up(std::int64_t epoch);
  Task<void> close_session(std::int64_t epoch, End end);
  FixRound gather();
  void read_inbox();
  void deliver(const FixRound& round, FixRoundEnd end);
  void end_waiting(std::vector<std::shared_ptr<Waiting>>& orders, bool written);
  void lease_from(SteadyTime asked);
  Task<void> apply_loop();
  Task<void> apply_round(SteadyTime& forget_at);
  Task<void> apply_once();
  std::shared_ptr<FixAwaited> awaited(const std::string& cl_ord_id);
  std::function<void(fix::Sent)> tell_sent(const std::shared_ptr<FixAwaited>& awaited) const;
  void show();

  FixOptions options_;
  Executor executor_;
  const Clock& clock_;
  HealthBoard& health_;
  std::string worker_;
  FixStore store_;
  FixLedger ledger_;

  std::shared_ptr<FixInbox> inbox_;
  std::shared_ptr<fix::Session> session_;  // null: somebody else has it
  std::string owner_;                      // who, as last seen
  SteadyTime leased_until_{};
  bool was_logged_on_ = false;
  SteadyTime speaks_since_{};
  std::int64_t reserved_out_ = 1;
  std::int64_t requests_ = 0;  // sent since the last round that was written
  unsigned resets_ = 0;

  std::map<std::string, std::weak_ptr<FixAwaited>> awaited_;
  std::size_t awaited_sweep_at_ = 0;
  std::vector<std::shared_ptr<Waiting>> unwritten_;
  std::vector<std::shared_ptr<Waiting>> writing_;
  std::vector<fix::Report> unstored_;
  std::vector<fix::Report> answers_;  // to be told to those who wait
  // The last of each ClOrdID: those that came since the round began, and those that it writes.
  std::map<std::string, fix::Report> statuses_;
  std::map<std::string, fix::Report> unstored_statuses_;

  bool stopping_ = false;
  bool owning_ = false;
  Signal wake_;
  Signal apply_wake_;
  Loops loops_;  // beside the one that keeps the session

  metrics::Gauge& state_;
  metrics::Counter& stored_count_;
  metrics::Counter& repeated_count_;
  metrics::Counter& unmatched_count_;
  metrics::Counter& late_count_;
  metrics::Counter& taken_count_;
  metrics::Counter& session_rejects_;  // orders_fix_rejects_sent_total{kind}
  metrics::Counter& business_rejects_;
};

}  // namespace todoke::orders

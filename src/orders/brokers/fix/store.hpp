// The FIX session's tables (fix.sql has the rules): the session's owner and numbers, the orders that went out
// on it and the reports that came back. For one coroutine at a time; stored() for any number.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/async.hpp"
#include "orders/brokers/fix/engine/session.hpp"
#include "orders/core/db_link.hpp"
#include "pg/pool.hpp"

namespace todoke::orders {

// An order that is about to leave.
struct FixEntry {
  std::string cl_ord_id;
  std::int64_t outbox_id = 0;
  std::string idempotency_key;
};

struct FixOwned {
  std::int64_t epoch = 0;
  std::int64_t next_out = 1;
  std::int64_t next_in = 1;
};

// The content of one transaction, which also renews the lease.
struct FixRound {
  std::int64_t next_out = 1;
  std::int64_t next_in = 1;
  std::vector<FixEntry> entries;
  std::vector<fix::Report> reports;
  std::vector<fix::Report> statuses;  // answers to status requests, one for each ClOrdID at most
  std::vector<std::string> awaited;   // ClOrdIDs whose reports are wanted back, without those answers
};

struct FixRoundEnd {
  bool is_ours = false;  // false: the session is somebody else's, and nothing was written
  std::int64_t fresh = 0;
  std::int64_t unmatched = 0;  // fresh ones of orders that are not known
  std::map<std::string, std::vector<fix::Report>> awaited;
};

struct FixStored {
  bool is_order = false;  // false: the order was never written down, and the ClOrdID may be another one's
  std::vector<fix::Report> reports;
};

// The exec_id under which the answer to a status request is stored. No report has it: cleaned() leaves no
// tab.
inline constexpr const char* kStatusExecId = "\tstatus";

// Makes a text fit for a column: replaces everything but printable ASCII by `?`, and cuts what is too long.
fix::Report cleaned(fix::Report report);

class FixStore {
 public:
  // Numbers out that are reserved beyond the orders that are written down: for the Logon, heartbeats and the
  // like until the next round, which comes with each order and several times in a lease.
  static constexpr std::int64_t kNumbersAhead = 100;

  FixStore(const pg::ConnectOptions& connect, pg::Pool& pool, std::string session,
           std::chrono::milliseconds lease)
      : link_(connect), pool_(pool), session_(std::move(session)), lease_(lease) {}

  // Nothing: another worker has the session.
  Task<std::optional<FixOwned>> claim_session(const std::string& worker, Deadline deadline);
  Task<std::string> owner(Deadline deadline);
  Task<FixRoundEnd> write(std::int64_t epoch, const FixRound& round, Deadline deadline);
  Task<void> give_up(std::int64_t epoch, const fix::Numbers& numbers, Deadline deadline);
  // The reports of an order so far.
  Task<FixStored> stored(std::string cl_ord_id, std::int64_t outbox_id, Deadline deadline);
  void close() { link_.close(); }

 private:
  DbLink link_;
  pg::Pool& pool_;
  std::string session_;
  std::chrono::milliseconds lease_;
};

// A report from the columns of fix_reports_of, which begin at `first`.
fix::Report report_from(const pg::Row& row, std::size_t first = 0);

}  // namespace todoke::orders

// The two interfaces of a Worker: to its table (Port) and to the code that does the work (Handler).
// docs/queue.md shows both for a plain table of jobs.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/async.hpp"
#include "queue/breaker.hpp"
#include "queue/decision.hpp"
#include "queue/fate.hpp"
#include "queue/ticket.hpp"

namespace todoke::queue {

// A row that a worker has claimed. A port derives its own with what else the row holds.
struct Job {
  Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  virtual ~Job() = default;

  // The port fills these in.
  Ticket ticket;
  RowState row;

  // The worker fills these in before Port::settle().
  Outcome outcome;
  Verdict verdict;

  // The worker's own.
  Fate fate = Fate::waiting;
  SteadyTime leased_from{};  // before the claim, or the last heartbeat, was asked for; min(): lost
  int times_locked = 0;
};
using JobPtr = std::shared_ptr<Job>;
using Jobs = std::vector<JobPtr>;

// The answer of a heartbeat for a row.
enum class Lease {
  renewed,
  runs_on,  // ours, but somebody else has locked the row: its lease runs on as it was
  lost,     // not ours any more
};

// The table. The worker calls claim(), take_over() and give_back_unknown() one after the other, and likewise
// settle() and uncount(); heartbeat() runs beside both. So a port needs three connections. Each call throws
// when the database fails, and the worker repeats it.
class Port {
 public:
  virtual ~Port() = default;
  Port() = default;
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  // Claims rows whose time has come, `most` at most: each is this worker's now, under its next claim number.
  virtual Task<Jobs> claim(std::size_t most) = 0;
  // Claims rows whose lease has lapsed, except those in `held`. Each has its attempt counted, is in doubt,
  // and says so (RowState::lapsed).
  virtual Task<Jobs> take_over(std::chrono::milliseconds lease, std::size_t most,
                               const std::vector<Ticket>& held) = 0;
  // Makes rows pending that this worker has claimed and that are not in `held`: the answer to their claim was
  // lost, so the worker has begun nothing with them.
  virtual Task<void> give_back_unknown(const std::vector<Ticket>& held) = 0;

  // Writes the verdict of each job whose row is still held under its ticket. Returns a fate for each job, in
  // their order: settled, lost or locked. May be asked again for a job when its answer was lost: then the job
  // may be settled already, and a port that can't tell says lost.
  virtual Task<std::vector<Fate>> settle(const Jobs& jobs) = 0;
  // Takes back attempts of rows that were settled before the breaker knew of the outage that had cost them.
  // Called only where a handler says what its tries reached (Handler::Ended::reach).
  virtual Task<void> uncount(const std::map<JobId, int>& /*tries*/) { co_return; }

  // Renews the lease of all rows with one statement. Returns an answer for each lease, in their order.
  virtual Task<std::vector<Lease>> heartbeat(const std::vector<Ticket>& tickets) = 0;

  // Whether claim() reads past rows that may not be claimed now, any number of them: then the worker leaves a
  // pause after a slow claim.
  [[nodiscard]] virtual bool passes_rows_over() const { return false; }
};

// Whether a job is certainly still ours. A handler asks right before a try has an effect.
class Hold {
 public:
  virtual ~Hold() = default;
  [[nodiscard]] virtual bool allows(std::chrono::milliseconds needed) const = 0;
};

class Handler {
 public:
  virtual ~Handler() = default;
  Handler() = default;
  Handler(const Handler&) = delete;
  Handler& operator=(const Handler&) = delete;

  struct Ended {
    Outcome outcome;
    std::optional<Reach> reach = {};  // none: the try says nothing about the other side
  };
  // Does the work of one job. Several run at a time. A job whose handle() throws is dropped.
  virtual Task<Ended> handle(Job& job, const Hold& hold) = 0;
  // job.verdict is made: prepares what the port writes with it. The breaker may change the verdict before it
  // is written; then this is called again.
  virtual void on_verdict(Job& /*job*/) {}
};

}  // namespace todoke::queue

// What the worker needs of its table (Port) and of those who do the work (Handler). The table's user derives
// its own Job with what a row holds.
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
#include "queue/ticket.hpp"

namespace todoke::queue {

// A row that this worker holds.
struct Job {
  Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  virtual ~Job() = default;

  Ticket ticket;
  RowState row;
  SteadyTime leased_from{};  // before the claim, or the last heartbeat, was asked for
  bool lost = false;         // a heartbeat has not found it any more: it is somebody else's
};
using JobPtr = std::shared_ptr<Job>;
using Jobs = std::vector<JobPtr>;

// What became of rows that were to be let go; the others are.
struct LetGo {
  std::vector<Ticket> fenced;  // were not ours any more: nothing was written for them but the journal
  std::vector<Ticket> locked;  // are ours still, and locked by somebody else: to be tried again
};

// A row that is ours still.
struct Kept {
  Ticket ticket;
  bool renewed = true;  // false: its lease runs on as it was, because somebody else has locked the row
};

// The table. Calls of one group never overlap; calls of different groups do, so each group needs a connection
// of its own. Each throws when the database fails; all but `settle` and `give_back` leave it to the next
// round then.
class Port {
 public:
  virtual ~Port() = default;
  Port() = default;
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  // Group 1: taking rows.

  // Turns rows whose time has come into pending ones; how many.
  virtual Task<std::size_t> promote_due(std::size_t most) = 0;
  virtual Task<Jobs> claim(std::size_t most) = 0;
  // Whether that looks at rows which may not be taken now, any number of them.
  [[nodiscard]] virtual bool passes_rows_over() const { return false; }
  // Rows whose lease has lapsed, but for those among `held`. Each has its attempt counted and is in doubt.
  virtual Task<Jobs> take_over(std::chrono::milliseconds lease, std::size_t most,
                               const std::vector<Ticket>& held) = 0;

  // Gives back rows that are claimed by this worker and not among `held`: claims whose answer was lost, so
  // that nothing was begun with them.
  virtual Task<void> give_back_unknown(const std::vector<Ticket>& held) = 0;

  // Group 2: letting go of rows. Each checks that the row is still held by the ticket.

  virtual Task<LetGo> settle(const Jobs& jobs) = 0;
  // Pending again, as if never claimed. Who is fenced is not told.
  virtual Task<LetGo> give_back(const Jobs& jobs) = 0;
  // Takes back attempts that an outage has cost rows which were settled meanwhile.
  virtual Task<void> refund(const std::map<JobId, int>& tries) = 0;

  // Group 3: keeping rows.

  // Renews the lease of all of them with one statement; those that are still ours.
  virtual Task<std::vector<Kept>> heartbeat(const std::vector<Ticket>& tickets) = 0;

  // Group 4: retention.

  // Moves finished rows to the archive, one bounded batch. True: there is more.
  virtual Task<bool> archive() = 0;
};

// Whether a job is still ours for sure, to be asked right before a try has an effect.
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
    enum class Then { settle, give_back };
    Then then = Then::settle;
    std::optional<Reach> reach = {};  // none: the other side was not spoken to
  };
  // Does the work of one job. Several run at a time.
  virtual Task<Ended> handle(Job& job, const Hold& hold) = 0;
  // Makes up what is to be written. May be called again with `counts` false as long as the job is not
  // settled. True: this was its last try, and it would not have been without counting it.
  virtual bool conclude(Job& job, bool counts) = 0;
};

}  // namespace todoke::queue

// The table cn_admin.jobs as the queue sees it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pg/pool.hpp"
#include "queue/port.hpp"

namespace todoke::jobs {

// A row that this worker holds.
struct ClaimedJob : queue::Job {
  std::string kind;
  std::string subject;
  std::string params;
  std::string state;
  bool is_cancelled = false;  // or shall be
  std::string result;         // JSON text; empty: none
  std::string error;          // of the last try; empty: none
};

// What its verdict makes of the row's status.
std::string_view status_of(const ClaimedJob& job);

class JobsPort final : public queue::Port {
 public:
  // `worker`: a name of its own, also across restarts. Claims rows of these kinds only: others belong to
  // other processes.
  JobsPort(pg::Pool& pool, std::string worker, std::vector<std::string> kinds);

  Task<queue::Jobs> claim(std::size_t most) override;
  Task<queue::Jobs> take_over(std::chrono::milliseconds lease, std::size_t most,
                              const std::vector<queue::Ticket>& held) override;
  Task<void> give_back_unknown(const std::vector<queue::Ticket>& held) override;
  Task<std::vector<queue::Fate>> settle(const queue::Jobs& jobs) override;
  Task<std::vector<queue::Lease>> heartbeat(const std::vector<queue::Ticket>& tickets) override;

  enum class Kept { goes_on, cancelled, lost };
  // Writes how far a job is.
  Task<Kept> keep(queue::Ticket ticket, std::int64_t done, std::optional<std::int64_t> total,
                  std::string state);

 private:
  Task<pg::Result> run(pg::Statement statement, pg::Params params);

  pg::Pool& pool_;
  const std::string worker_;
  const std::vector<std::string> kinds_;
};

}  // namespace todoke::jobs

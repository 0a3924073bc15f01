// Erases the events of those who have asked to vanish (NIP-62), after the writer has taken the request:
// everything of the author up to the request, in effect or not, but requests to vanish; and gift wraps for
// them. And what is stored of authors and topics that the operator has blocked, where the operator wants that
// (blocks.hpp).
//
//    somebody waits ──▶ begin a pass for all ──▶ blocks of events ──▶ blocks of versions ──▶ settle ──▶ rest
//                                            └─ erase what was found, some events at a time ─┘
//
// A pass reads the tables once, whatever the number of requests, and notes how far it has come: killed at any
// moment it goes on there. Several relays of one database may be at it at the same time; what one has erased
// the other does not find. It gives way: between two steps it rests as long as the step took, and the log's
// lock is held for `kErasedMax` events at a time. After a pass requests to vanish, which anybody can send,
// wait for several times as long as it took; what the operator asks for does not.
//
// Bounded: blocks of a step, events of a transaction, requests of a pass, the share of time that passes take.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/periodic.hpp"
#include "pg/connection.hpp"
#include "pg/pool.hpp"
#include "relay/commit_listener.hpp"
#include "relay/metrics.hpp"
#include "relay/store.hpp"

namespace todoke::relay {

class Eraser final : public PeriodicService {
 public:
  // `pool` tells whether there is something to do; `connect` is for doing it. The listener, on the same
  // executor, hears of every commit.
  Eraser(const Executor& executor, pg::Pool& pool, pg::ConnectOptions connect, CommitListener& listener,
         const Clock& clock, RelayMetrics& metrics);

 private:
  struct Pass {
    std::int64_t number;
    bool under_way;
    std::int64_t next_block;
    std::int64_t events_end;
    std::int64_t versions_end;
    bool is_due;      // another one may begin, and somebody waits for it
    bool has_blocks;  // it looks for what the operator has blocked, too
  };

  Task<void> round(RoundCause cause) override;
  Task<Pass> read_pass(pg::Connection& connection);
  Task<void> run_pass();
  Task<void> begin();
  // Some blocks; gives the one to go on with.
  Task<std::int64_t> erase_blocks(const Pass& pass);
  Task<std::int64_t> forget_blocks(const Pass& pass);
  // Those of the rows that have this reason.
  Task<void> erase(const pg::Result& found, std::string reason, metrics::Counter& counter);
  Task<void> end(std::int64_t number);
  // `work` begins with the log's lock.
  Task<void> run_locked(pg::Batch work);

  pg::Pool& pool_;
  const pg::ConnectOptions connect_;
  CommitListener& listener_;
  const Clock& clock_;
  RelayMetrics& metrics_;
  std::unique_ptr<pg::Connection> connection_;  // while a pass is under way
  std::uint64_t erased_ = 0;                    // in this pass, by this relay
};

}  // namespace todoke::relay

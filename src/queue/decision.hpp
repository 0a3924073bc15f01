// What is done with a row that was claimed, and what is written when its try has ended. Pure: no clock, no
// database, no randomness of its own.
//
//              claim                      done                 pending: to be sent, now or at next_run_at
//   pending ----------> sending ------------------> succeeded  failed:  waits for next_run_at, then pending
//      ^                 |   |  permanent, exhausted           aborted: needs a person
//      |  due            |   +--------------------> aborted
//      +------- failed <-+ transient
//
// The ledger is the truth about an outcome. It ends in the same one as the row; where it has ended already,
// the row follows it and nothing is sent.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "queue/retry_table.hpp"

namespace todoke::queue {

enum class RowStatus { pending, sending, succeeded, failed, aborted };
std::string_view to_string(RowStatus status);

// What the ledger says of the row's key, as it was read with the claim.
enum class LedgerState {
  missing,      // created when the row is settled
  open,         // accepted, not settled
  succeeded,    // final
  failed,       // settled; a row that is pending all the same has been requeued
  conflicting,  // another content under the same key
};

struct RowState {
  int attempts = 0;       // tries that ended in failure
  bool in_doubt = false;  // an earlier try may have had its effect
  bool lapsed = false;    // taken over from a worker whose lease had lapsed, not claimed while pending
  LedgerState ledger = LedgerState::open;
};

struct Policy {
  int attempts_max = 6;
  RetryTable retry{{std::chrono::seconds(5)}};
};

enum class Step {
  try_it,
  look_up_then_try,      // in doubt: ask the other side before
  look_up_then_give_up,  // in doubt and no try left: the other side may still know better
  give_up,               // no try left
  follow_ledger,         // settled already, or not ours: nothing is sent
};

Step next_step(const RowState& row, const Policy& policy, bool can_look_up);

// How a try ended.
struct Outcome {
  enum class Kind { done, transient, permanent };
  Kind kind = Kind::transient;
  bool in_doubt = false;     // this try may have had its effect although it looks like a failure
  bool was_tried = true;     // false: refused before anything was sent
  bool doubt_ended = false;  // the other side has said what became of the earlier tries
  bool counts = true;        // against the row's budget; false during an outage that the breaker has seen
  std::optional<std::chrono::milliseconds> retry_after = {};
};

enum class LedgerWrite { none, succeeded, failed };

// What is written.
struct Verdict {
  RowStatus status = RowStatus::failed;
  int attempts = 0;
  bool in_doubt = false;
  std::optional<std::chrono::milliseconds> delay = {};  // until the next try
  LedgerWrite ledger = LedgerWrite::none;
  bool operator==(const Verdict&) const = default;
};

// `jitter` is from 0 to 1.
Verdict judge(const RowState& row, const Outcome& outcome, const Policy& policy, double jitter);

}  // namespace todoke::queue

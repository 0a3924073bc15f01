// Decides what a worker does with a row that it has claimed, and the state of the row after its try. Pure: no
// clock, no database, no randomness of its own.
//
//              claim                      done                 pending: to be worked on, now or at its time
//   pending ----------> held --------------------> succeeded   failed:  waits for its time, then pending
//     ^ ^                | |  permanent, exhausted             aborted: needs a person
//     | | untouched      | +-----------------------> aborted
//     | +----------------+
//     |  due             | transient
//     +------- failed <--+
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "queue/retry_table.hpp"

namespace todoke::queue {

// The state of a row when its worker lets go of it.
enum class RowStatus { pending, succeeded, failed, aborted };
std::string_view to_string(RowStatus status);
// Whether the row has ended, and nobody claims it any more.
constexpr bool is_over(RowStatus status) {
  return status == RowStatus::succeeded || status == RowStatus::aborted;
}

struct RowState {
  int attempts = 0;       // tries that ended in failure
  bool in_doubt = false;  // an earlier try may have had its effect
  bool lapsed = false;    // taken over from a worker whose lease had lapsed, not claimed while pending
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
};

Step next_step(const RowState& row, int attempts_max, bool can_look_up);

// How a try ended.
struct Outcome {
  enum class Kind {
    done,
    transient,  // may succeed later
    permanent,  // will never succeed
    untouched,  // nothing was begun: the row is given back as if it had never been claimed
  };
  Kind kind = Kind::transient;
  bool in_doubt = false;       // this try may have had its effect although it looks like a failure
  bool was_tried = true;       // false: refused before anything was done
  bool doubt_ended = false;    // the other side has said what became of the earlier tries
  bool counts_always = false;  // counts also during an outage that the breaker has seen
  std::optional<std::chrono::milliseconds> retry_after = {};

  [[nodiscard]] bool is_try() const { return kind != Kind::untouched && was_tried; }
};

// The new state of the row.
struct Verdict {
  RowStatus status = RowStatus::pending;
  int attempts = 0;
  bool in_doubt = false;
  std::optional<std::chrono::milliseconds> delay = {};  // until the next try
  bool operator==(const Verdict&) const = default;
};

// `counts`: a failure counts against the row's budget; false during an outage. `jitter` is from 0 to 1.
Verdict judge(const RowState& row, const Outcome& outcome, bool counts, const Policy& policy, double jitter);

}  // namespace todoke::queue

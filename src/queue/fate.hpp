// Where a job stands, from its claim until its worker lets go of it. A job has one fate at a time, and
// Worker::become() alone changes it: a step that is not drawn here is a bug and throws.
//
//   claim ---> waiting ---------> working ---------> ended ---------> settling ---> settled
//                 |  a lane is free  |  handle()     ^  ^  next batch   |  ^  |
//                 |                  |  has ended    |  |               |  |  +----> lost
//                 | stop, or the     |               |  |        locked |  | later
//                 | breaker opens    |               |  |               v  |
//                 +------------------|---------------+  |              locked
//                                    |                  |
//                                    +--> undecided ----+
//                   last try, found nobody       the breaker has ruled
//
//   from anywhere: dropped. handle() threw, the server refuses the verdict, or the worker died.
//   The lease lapses, and the worker that takes the row over finds it in doubt.
#pragma once

#include <string_view>

namespace todoke::queue {

enum class Fate {
  waiting,    // claimed, not begun
  working,    // handle() runs
  undecided,  // found nobody at its last try; if the breaker opens by it, the try does not count
  ended,      // has its verdict, which is not written yet
  settling,   // its verdict is being written
  locked,     // its row is ours, but somebody else has locked it: written later
  settled,    // its verdict is written; the row is no longer ours
  lost,     // the row was somebody else's before the verdict was written (fenced); nothing was written to it
  dropped,  // left to its lease
};
inline constexpr int kFates = 9;

std::string_view to_string(Fate fate);

// Whether the diagram has this step.
bool may_become(Fate from, Fate to);

// Whether a worker with such a job still holds its row, as far as it knows.
constexpr bool is_held(Fate fate) {
  return fate < Fate::settled;
}

}  // namespace todoke::queue

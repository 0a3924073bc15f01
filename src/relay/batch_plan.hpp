// Which waiting events may share a batch. The parts of one SQL statement can't see each other, so a batch
// must hold no two events of which one could change what becomes of the other: the same id, two versions of a
// key, a deletion request and its target, two requests for one target, a request by id and a version of
// anything of the same author, a request to vanish and anything of its author or wrapped for them.
//
// Pure. Events that conflict with an earlier one, taken or left, stay in the queue in their order; so taking
// batches until the queue is empty has the effect of taking the events one by one.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "relay/incoming.hpp"

namespace todoke::relay {

struct BatchLimits {
  std::size_t events_max;
  std::size_t rows_max;  // of all its events (Incoming::rows); one that has more goes alone
};

// Takes events out of the queue, within the limits. Looks at four times as many events and rows at most:
// behind a long run of conflicts a batch is smaller. Never empty unless the queue is.
std::vector<Incoming> take_batch(std::deque<Incoming>& queue, const BatchLimits& limits);

}  // namespace todoke::relay

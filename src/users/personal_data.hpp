// The background jobs that copy and delete what is stored about a person (docs/user-api.md, Personal data).
//
//   export    reads all of a key's rows and, block by block, its events; writes a zip file into
//             cn_user.export_chunks, where its owner downloads it for a week
//   deletion  closes the account and empties its rows (cn_user.forget), asks the relay's eraser to erase the
//             events (reason `dsar` in the log), waits for it, and empties once more what came meanwhile
//
// Both may be cut off anywhere. An export begins anew then; a deletion goes on.
//
// Bounded: blocks of a step and bytes of a piece; the job rests as long as a step took, so that the events
// are read at half of the speed at most.
#pragma once

#include "jobs/kind.hpp"
#include "pg/pool.hpp"

namespace todoke::users {

// `pool`: of the background; outlives the kinds.
jobs::Kind export_kind(pg::Pool& pool);
jobs::Kind deletion_kind(pg::Pool& pool);

}  // namespace todoke::users

// The background job topic.link: stored events are linked to a topic that was enabled (relay/topic_link.hpp),
// and then the requests for it are active.
#pragma once

#include "jobs/kind.hpp"
#include "pg/pool.hpp"

namespace todoke::app {

// The pool outlives it.
jobs::Kind topic_link_job(pg::Pool& pool);

}  // namespace todoke::app

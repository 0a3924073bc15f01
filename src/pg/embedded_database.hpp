// The first connection to a fresh cluster.
#pragma once

#include "pg/embedded_folder.hpp"

namespace todoke::pg {

// Connects as the role todoke and makes the database todoke when it is missing. Blocking: run it through
// run_blocking. Throws std::runtime_error with what Postgres says.
void ensure_embedded_database(const EmbeddedLayout& layout);

}  // namespace todoke::pg

// The configuration keys of this room.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/config.hpp"

namespace todoke::pg {

inline constexpr Key<std::string> kDatabaseUrl{{
    .name = "database.url",
    .type = KeyType::text,
    .fallback = "",
    .meaning = "Connection string or URI of the Postgres database. Empty: the node runs its own server.",
    .secret = true,
    .environment = "DATABASE_URL",
}};

inline constexpr Key<std::string> kDatabaseOwnerUrl{{
    .name = "database.owner_url",
    .type = KeyType::text,
    .fallback = "",
    .meaning =
        "Connection string or URI of the same database as a role that owns its tables: it migrates, and "
        "makes "
        "roles for consumers of the log. The role of database.url then needs no right to change the schema "
        "(docs/database.md). Empty: the role of database.url does it all.",
    .secret = true,
}};

inline constexpr Key<std::int64_t> kDatabasePoolMax{{
    .name = "database.pool_max",
    .type = KeyType::integer,
    .fallback = "20",
    .meaning = "The most connections that this node opens to the database, apart from a few that serve one "
               "purpose (the listener, the writer, live delivery, the intake and the worker of orders). "
               "Reads for the public, orders, background work and control have shares of their own.",
    .min = 6,    // the least shares
    .max = 150,  // the embedded server takes 200 in all
}};

std::span<const KeySpec* const> config_keys();

}  // namespace todoke::pg

// The configuration keys of this room.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/config.hpp"

namespace todoke::pg {

inline constexpr Key<std::string> kDatabaseUrl{{
    .name = "database.url",
    .fallback = "",
    .meaning = "Connection string or URI of the Postgres database. Empty: the node runs its own server.",
    .secret = true,
    .environment = "DATABASE_URL",
}};

inline constexpr Key<std::string> kDatabaseOwnerUrl{{
    .name = "database.owner_url",
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
    .fallback = "20",
    .meaning = "The most connections that this node opens to the database, apart from a few that serve one "
               "purpose (the listener, the writer, live delivery, the intake and the worker of orders). "
               "Reads for the public, orders, background work and control have shares of their own.",
    .min = 6,    // the least shares
    .max = 150,  // the embedded server takes 200 in all
}};

inline constexpr Key<std::int64_t> kMinFreeBytes{{
    .name = "capacity.min_free_bytes",
    .type = KeyType::size,
    .fallback = "1GiB",
    .meaning =
        "Room that must be free on the disk of the embedded Postgres. With less no event and no order is "
        "taken in (`error: storage full`, 503) until a quarter more than this is free; reads go on. It is "
        "what Postgres still needs for what it has taken: without room for its WAL it stops. 0: not "
        "watched. With database.url the server's own refusal (SQLSTATE 53100) takes its place.",
    .min = 0,
    .max = 1LL << 50,
    .live = true,
}};

std::span<const KeySpec* const> config_keys();

}  // namespace todoke::pg

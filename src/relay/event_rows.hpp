// Stored events as they come back from the database.
#pragma once

#include "nostr/event_parse.hpp"
#include "pg/result.hpp"
#include "relay/incoming.hpp"

namespace todoke::relay {

// For what was taken already: limits are for what comes in, and may have been higher then or elsewhere.
nostr::EventLimits no_limits();

// From a row with the columns event_id, pubkey, created_at, kind, tags, content, sig, raw, ingested_seq,
// expires_at, non_public and topics. Throws for a row that is no event: nobody but the relay writes them.
LiveEventPtr read_event(const pg::Row& row);

}  // namespace todoke::relay

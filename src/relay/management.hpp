// The relay management API (NIP-86): an operator whose key is in relay.admins keeps authors, events and
// addresses out over HTTP, as `todoke block` does (blocks.hpp). Each request is signed for itself (NIP-98): a
// signature that somebody else has seen is good for the same body, for a minute.
//
// Cost: a signature's check for a request that names one of the admins; others end before it. Bounded: the
// body, and what a list shows.
#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "net/message.hpp"
#include "nostr/auth.hpp"
#include "pg/pool.hpp"

namespace todoke::relay {

inline constexpr std::string_view kManagementType = "application/nostr+json+rpc";
inline constexpr std::size_t kManagementBodyMax = 64 * 1024;

// `admins` are keys in hex. The request lives as long as the task. Throws what the database throws.
Task<net::Response> manage(const net::Request& request, std::vector<std::string> admins,
                           nostr::AuthTarget target, pg::Pool& pool, const Clock& clock);

}  // namespace todoke::relay

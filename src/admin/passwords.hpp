// Passwords of administrators: Argon2id (RFC 9106) by libargon2, as encoded hashes that name their
// parameters.
//
// A hash takes 64 MiB and some 100 ms of a processor, on the blocking pool. Callers bound how many run at a
// time.
#pragma once

#include <string>

#include "base/async.hpp"
#include "base/error.hpp"

namespace todoke::admin {

inline constexpr std::size_t kPasswordBytesMax = 1'024;
// Shorter ones are taken; whoever sets one is told.
inline constexpr std::size_t kPasswordBytesAdvised = 12;

// Refused: an empty password and one that is too long.
Expected<void> check_password(const std::string& password);

std::string hash_password(const std::string& password);
// With an empty hash it takes as long and says no: names can't be told apart by the time of an answer.
Task<bool> is_password(std::string password, std::string hash);

}  // namespace todoke::admin

// A process that was started as root becomes another user, for good.
#pragma once

#include <string>
#include <sys/types.h>

namespace todoke {

// From now on no program that this thread or a later one starts gains rights by it (PR_SET_NO_NEW_PRIVS), and
// none inherits capabilities. Belongs to the beginning: threads that are there already are not reached.
// Throws std::system_error.
void refuse_new_privileges();

// All threads of the process get the user's ids and groups, and no capability is left. Then nothing brings
// root back: that is tried, and a process that could return ends at once (std::abort). Its memory is closed
// to the user's other processes (it is not dumpable). Throws std::system_error, and has changed nothing or
// everything but the ids, when it is not allowed.
void become_user(const std::string& name, uid_t uid, gid_t gid);

}  // namespace todoke

// Overwrites a secret that is not needed any more. Copies that its text had on the way here are not reached.
#pragma once

#include <cstring>
#include <string>

namespace todoke {

inline void wipe(std::string& secret) {
  ::explicit_bzero(secret.data(), secret.size());
  secret.clear();
}

}  // namespace todoke

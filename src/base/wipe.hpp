// Overwrites a secret that is not needed any more. Does not reach copies that were made of the text before.
#pragma once

#include <cstring>
#include <string>

namespace todoke {

inline void wipe(std::string& secret) {
  ::explicit_bzero(secret.data(), secret.size());
  secret.clear();
}

}  // namespace todoke

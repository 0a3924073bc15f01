// Whom the embedded Postgres runs as, and who may connect to it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "embedded/child.hpp"

namespace todoke::embedded {

struct User {
  std::string name;  // whom Postgres runs as
  uid_t uid = 0;
  std::optional<Identity> identity;  // set when todoke runs as root and must drop to `name`
  // Names of the system that connect as the role todoke: whoever runs todoke, and root.
  std::vector<std::string> clients;
};

// `configured` counts only for root. Refused: a user that does not exist or is root; a uid without a name,
// which Postgres can't work with (it looks users up by name for itself and for its clients).
Expected<User> user_for(const std::string& configured);

}  // namespace todoke::embedded

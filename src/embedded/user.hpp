// Whom the embedded Postgres and a node that was started as root run as, and who may connect to the database.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "embedded/child.hpp"

namespace todoke::embedded {

struct User {
  std::string name;
  uid_t uid = 0;
  std::optional<Identity> identity;  // set while todoke runs as root: what `name` means
  // Names of the system that connect as the role todoke: whoever runs todoke, and root.
  std::vector<std::string> clients;
};

// The value of server.user that keeps a node root.
inline constexpr std::string_view kStayRoot = "root";

// Whom the node and its Postgres run as. Started as another user than root, as that one. Started as root, as
// the user `configured`; empty or kStayRoot: as the owner of the cluster or of `data_dir` where there is one
// who is not root and has a name, else as todoke, else as postgres; without a database in the data folder
// (`embedded` false) as nobody before nothing is left. Refused: a user that does not exist or is root; a uid
// without a name, which Postgres can't work with (it looks users up by name for itself and for its clients).
Expected<User> user_for(const std::string& configured, const std::string& data_dir = {},
                        bool embedded = true);

}  // namespace todoke::embedded

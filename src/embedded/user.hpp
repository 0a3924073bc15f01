// The user that the embedded Postgres, and a node that was started as root, run as; and who may connect to
// the database.
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
  // Users of the system that connect as the role todoke: the one that runs todoke, and root.
  std::vector<std::string> clients;
};

// The value of server.user that keeps a node root.
inline constexpr std::string_view kStayRoot = "root";

// The user that the node and its Postgres run as. A node that another user than root starts runs as that
// user. A node that root starts runs as `configured`; where that is empty or kStayRoot, as the owner of the
// cluster or of `data_dir` if that is a user with a name and not root, else as todoke, else as postgres.
// Without a database in the data folder (`embedded` false) the user nobody is the last choice. Refused: a
// user that does not exist or is root; a uid without a name, which Postgres can't work with (it looks users
// up by name for itself and for its clients).
Expected<User> user_for(const std::string& configured, const std::string& data_dir = {},
                        bool embedded = true);

}  // namespace todoke::embedded

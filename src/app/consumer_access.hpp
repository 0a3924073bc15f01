// Consumers from outside: making one, with a database role and a connection string, and taking one away.
#pragma once

#include <string>

#include "base/config.hpp"
#include "pg/connection.hpp"

namespace todoke::app {

struct AddOptions {
  std::string name;
  std::string from = "start";
  bool mandatory = false;
  bool renew = false;
};

// Throws UserError for what is no name of a consumer.
void check_consumer_name(const std::string& name);

// Prints the connection string on standard output, and what else there is to say on standard error.
Task<void> add_consumer(pg::Connection& connection, const Config& config, AddOptions options);

// Its role, its offset and what was kept of it. What the role owns in this database goes only when
// `with_owned` says so; a consumer that a node runs is refused.
Task<void> remove_consumer(pg::Connection& connection, std::string name, bool with_owned);

}  // namespace todoke::app

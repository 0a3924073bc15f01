// Which database a command talks to: the configured one, or the embedded one of the data folder.
#pragma once

#include <functional>
#include <string>

#include "app/runtime.hpp"
#include "base/config.hpp"
#include "pg/connection.hpp"

namespace todoke::app {

struct DatabaseInUse {
  bool embedded = false;
  std::string url;        // for libpq; may hold a password: never shown
  std::string owner_url;  // the same database as the owner of its tables; empty: `url` owns them
  std::string shown;      // for people
};

DatabaseInUse database_in_use(const Config& config);

// Which database a connection string leads to, without user and password: "host=… port=… dbname=…". Two
// strings with the same place lead to the same database; localhost and its addresses are one. Empty for a
// text that libpq can't read.
std::string database_place(const std::string& url);

// Whether something answers on the embedded database's socket. Throws UserError when a server holds the
// socket and does not answer.
bool embedded_is_running(const Config& config);

// The role that a command works as: that of a node, or the owner of the tables where there is one.
enum class As { node, owner };

// Connects, starting the embedded server for as long as `work` runs when it is not running already, and calls
// `work`.
void with_database(const Config& config, std::function<Task<void>(pg::Connection&)> work, As as = As::node);

// For commands that look at what is there: starts nothing and makes nothing. Throws UserError, with what to
// do, when no embedded server runs, or the schema is not that of this binary.
void with_running_database(const Config& config, std::function<Task<void>(pg::Connection&)> work,
                           As as = As::node);

// For commands that work beside a node and without one: starts the embedded server for as long as `work` runs
// where none runs. Throws UserError when there is no database yet, or the schema is not that of this binary.
void with_made_database(const Config& config, std::function<Task<void>(pg::Connection&)> work);

// Throws the UserError of with_running_database for an embedded server that does not run.
void refuse_stopped(const Config& config, const DatabaseInUse& database);

}  // namespace todoke::app

// Lets another role into the database that a connection leads to.
#pragma once

#include <map>
#include <string>

#include "pg/connection.hpp"

namespace todoke::pg {

// The verifier that CREATE ROLE … PASSWORD takes instead of the password itself, so that the password never
// travels and stands in no log (scram-sha-256).
std::string scram_verifier(Connection& connection, const std::string& role, const std::string& password);

// The settings of libpq that are in force, by their names (host, port, dbname, sslmode …), without any
// secret. `host` is the folder of the socket where there is no network between.
std::map<std::string, std::string> connection_settings(Connection& connection);

}  // namespace todoke::pg

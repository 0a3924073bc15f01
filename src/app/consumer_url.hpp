// The connection string of an outside consumer: a URI that every driver understands and that works as it is
// printed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "pg/connection.hpp"

namespace todoke::app {

// By the names that libpq has for them.
using ConnectionSettings = std::map<std::string, std::string>;

// One host stands where people look for it; several, and the folder of a socket, among the parameters.
std::string consumer_uri(const std::string& role, const std::string& password,
                         const ConnectionSettings& settings);

struct ConsumerUrl {
  std::string url;                 // holds the password
  std::vector<std::string> notes;  // for the person who gets it; hold no secret
};

// Asks the server how it can be reached: by TCP where it listens, by its socket where it does not.
// `log.advertise` wins over the address that the server knows of itself.
Task<ConsumerUrl> consumer_url(pg::Connection& connection, const Config& config, std::string role,
                               std::string password, Deadline deadline);

}  // namespace todoke::app

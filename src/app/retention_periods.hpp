// The periods of retention that hold for the node that runs on this data folder, for commands beside it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/config.hpp"
#include "pg/connection.hpp"
#include "relay/purge.hpp"

namespace todoke::app {

// With the values of the database over `config`.
Task<relay::RetentionPeriods> periods_in_force(pg::Connection& connection, const Config& config);

// Throws UserError where `policy` as the ingest_policy of the topic contradicts the periods of the node.
Task<void> refuse_policy(pg::Connection& connection, const Config& config, std::string topic,
                         std::string policy);

}  // namespace todoke::app

// The database's layer of the configuration (cn_admin.service_configs) and its history. Versions, history and
// NOTIFY are the work of triggers (migrations/0001_admin.sql), in the transaction of the change.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/live_config.hpp"
#include "pg/connection.hpp"

namespace todoke::admin {

// By service, the values of its live keys that stand in the file: what a new row begins with.
using ConfigSeeds = std::map<std::string, std::map<std::string, std::string>>;
ConfigSeeds service_config_seeds(const Config& config);

// What the database says of a key, and the row that says it: that of the key's service; `anywhere`: where
// that says nothing, another row into which an operator has put the key by hand. Version 0: there is no such
// row.
struct StoredValue {
  std::string service;
  std::optional<std::string> value;
  std::int64_t version = 0;
};
StoredValue stored_value(const std::vector<ConfigRow>& rows, const std::string& key, bool anywhere = false);

// What a change makes of the configuration of a node.
struct ConfigTrial {
  Config before;
  Config after;
  std::vector<std::string> problems;  // what of the rows is refused after the change
};
// `config`: file, environment and flags of the node. Throws UserError when the configuration with the changed
// rows breaks a rule that it did not break before, as a start would. A row that was refused before stays
// changeable: that is how an operator mends it.
ConfigTrial check_config_change(const Config& config, std::vector<ConfigRow> rows, const std::string& key,
                                const std::optional<std::string>& value);

// Makes a row for each service with live keys that has none yet, with what the file says of them. Gives the
// services that were seeded.
Task<std::vector<std::string>> seed_service_configs(pg::Connection& connection, const Config& config,
                                                    Deadline deadline);

// All rows; of a table with thousands of keys the first ones.
Task<std::vector<ConfigRow>> read_service_configs(pg::Connection& connection, Deadline deadline);

struct ConfigChange {
  std::string service;  // the row
  std::string key;
  std::optional<std::string> value;   // nothing: the database says nothing about the key any more
  std::int64_t expected_version = 0;  // of the key's service; 0: there is no row
  std::string actor;
};
// The version that the change made; nothing when the service is at another version than expected.
Task<std::optional<std::int64_t>> change_service_config(pg::Connection& connection, ConfigChange change,
                                                        Deadline deadline);

struct ConfigHistoryLine {
  std::string service;
  std::int64_t version = 0;
  std::string key;
  std::optional<std::string> before;  // nothing: the database said nothing
  std::optional<std::string> after;
  std::string changed_at;
  std::string changed_by;
};
// Of one key or of all, the newest first.
Task<std::vector<ConfigHistoryLine>> service_config_history(pg::Connection& connection,
                                                            std::optional<std::string> key, std::int32_t most,
                                                            Deadline deadline);

}  // namespace todoke::admin

// Every subcommand of `todoke`. To add one: write command_<name>.cpp, declare its function here, and name it
// in the table in commands.cpp. Help and dispatch follow.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "app/command.hpp"

namespace todoke::app {

Command admin_command();
Command audit_command();
Command backfill_command();
Command backup_command();
Command block_command();
Command config_command();
Command consumers_command();
Command doctor_command();
Command export_command();
Command import_command();
Command key_command();
Command migrate_command();
Command orders_command();
Command p2p_command();
Command psql_command();
Command publish_command();
Command query_command();
Command restore_command();
Command retention_command();
Command run_command();
Command stats_command();
Command sync_command();
Command topic_command();
Command up_command();
Command version_command();

// By name.
const std::map<std::string_view, Command>& commands();

// `todoke WORDS…`: runs the command and returns the exit code of the process: 0, 1 for a failure, 2 for wrong
// use. Writes what went wrong to stderr.
int run_program(const std::vector<std::string>& words);

}  // namespace todoke::app

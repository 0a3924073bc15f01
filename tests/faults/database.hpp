// Whether the relay's tables agree with each other, asked by SQL from outside.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "harness/sql_session.hpp"

namespace todoke::test {

// How to reach the embedded server of a node.
std::string conninfo_of(const std::filesystem::path& data_dir);

// What is wrong with events, log and links, a line for each; empty when they agree: nothing is there twice,
// every event has its rows of the log and every upsert its event, ingested_seq is the first of them, exactly
// what is in effect is linked.
std::string problems_in_store(SqlSession& database);
std::set<std::string> stored_ids(SqlSession& database);

}  // namespace todoke::test

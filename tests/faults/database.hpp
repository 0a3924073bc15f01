// Plain SQL from outside, blocking, on a connection of its own; and whether the relay's tables agree with
// each other.
#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

struct pg_conn;

namespace todoke::test {

// How to reach the embedded server of a node.
std::string conninfo_of(const std::filesystem::path& data_dir);

class Database {
 public:
  explicit Database(const std::string& conninfo);

  // Any number of statements. Throws what the server says.
  void run(const std::string& sql);
  // The first column of the last statement's rows.
  std::vector<std::string> column(const std::string& sql);
  // Of its only row.
  std::string value(const std::string& sql);

 private:
  struct Closer {
    void operator()(pg_conn* connection) const;
  };
  std::unique_ptr<pg_conn, Closer> connection_;
};

// What is wrong with events, log and links, a line for each; empty when they agree: nothing is there twice,
// every event has its rows of the log and every upsert its event, ingested_seq is the first of them, exactly
// what is in effect is linked.
std::string problems_in_store(Database& database);
std::set<std::string> stored_ids(Database& database);

}  // namespace todoke::test

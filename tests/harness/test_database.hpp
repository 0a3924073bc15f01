// A database for one test, with the schema of migrations/, dropped when the object is destroyed. It is cloned
// from a template that the first test of a run makes; the template is named after the checksums of the
// migrations, so a changed file makes a new one. A clone takes about 50 ms.
#pragma once

#include <string>
#include <utility>

#include "pg/connection.hpp"

namespace todoke::test {

class TestDatabase {
 public:
  TestDatabase();
  // One that is there already, and stays.
  explicit TestDatabase(std::string url) : url_(std::move(url)) {}
  ~TestDatabase();
  TestDatabase(const TestDatabase&) = delete;
  TestDatabase& operator=(const TestDatabase&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& url() const { return url_; }
  // The folder of the server's socket, for connection strings of one's own.
  [[nodiscard]] const std::string& socket_folder() const { return folder_; }

  [[nodiscard]] Task<std::unique_ptr<pg::Connection>> connect() const;
  // Runs a script over a connection of its own; blocks.
  void execute(const std::string& sql) const;

 private:
  std::string folder_;
  std::string name_;
  std::string url_;
};

}  // namespace todoke::test
